"""apache-iggy, whose core is Iggy's Rust client and whose Python interface is asynchronous."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage, TcpConfig

from versus.clients.client import DEADLINE_SECONDS, STAMP, Begin, Client, LoadError
from versus.order import Done
from versus.schedule import Schedule, follow

STREAM: Final = "default"
"""Where Penstock has the topics that clients of other protocols make."""
USER: Final = "iggy"
PASSWORD: Final = "iggy"
BATCH: Final = 1000
"""Messages a request, as the client's own producer has it."""
BATCH_BYTES_MAX: Final = 1 << 20
TUNED_REQUESTS: Final = 4
"""Requests under way when tuned; by default there is one."""
TUNED_POLL: Final = 4000
PUBLISH_CONNECTIONS: Final = 32
"""Connections of an open loop: one client sends a request only after the answer to the last."""
EMPTY_POLL_SECONDS: Final = 0.001
"""Iggy's polls do not wait for messages: without a pause they would take a whole core."""


class IggyLoad(Client):
    def first(self) -> None:
        asyncio.run(self._first())

    def produce(self, begin: Begin) -> Done:
        return asyncio.run(self._produce(begin))

    def consume(self, begin: Begin) -> Done:
        return asyncio.run(self._consume(begin))

    def requests(self, begin: Begin) -> Done:
        return asyncio.run(self._requests(begin))

    def publish(self, begin: Begin) -> Done:
        return asyncio.run(self._publish(begin))

    def end_to_end(self, begin: Begin) -> Done:
        return asyncio.run(self._end_to_end(begin))

    def many(self, begin: Begin) -> Done:
        return asyncio.run(self._many(begin))

    async def _first(self) -> None:
        await self._connect(create=1)
        await self._send([SendMessage(self.value)])

    async def _produce(self, begin: Begin) -> Done:
        await self._connect(create=1)
        batch = self._batch()
        messages = 0
        began = begin()
        end = began + self.order.seconds

        async def worker() -> None:
            nonlocal messages
            while messages < self.order.count_max and time.perf_counter() < end:
                await self._send(batch)
                messages += len(batch)

        await _together(worker() for _ in range(TUNED_REQUESTS if self.order.tuned else 1))
        return Done(messages, time.perf_counter() - began)

    async def _consume(self, begin: Begin) -> Done:
        await self._connect()
        size = TUNED_POLL if self.order.tuned else BATCH
        offset = 0
        began = begin()
        while offset < self.order.count:
            messages = await self._poll(offset, size)
            if not messages:
                raise LoadError(f"the topic ends at {offset}, before {self.order.count}")
            offset = messages[-1].offset() + 1
        return Done(offset, time.perf_counter() - began)

    async def _requests(self, begin: Begin) -> Done:
        await self._connect(create=1)
        clients = [await self._new_client() for _ in range(self.order.window)]
        message = [SendMessage(self.value)]
        answered = 0
        began = begin()

        async def worker(client: IggyClient) -> None:
            nonlocal answered
            while time.perf_counter() < began + self.order.seconds:
                await client.send_messages(STREAM, self.order.topic, 0, message)
                answered += 1

        await _together(worker(client) for client in clients)
        return Done(answered, time.perf_counter() - began)

    async def _publish(self, begin: Begin) -> Done:
        await self._connect(create=1)
        clients = [await self._new_client() for _ in range(PUBLISH_CONNECTIONS)]
        message = [SendMessage(self.value)]
        await self._send(message)
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies = [0] * schedule.count

        async def send(number: int, due: int) -> None:
            client = clients[number % len(clients)]
            await client.send_messages(STREAM, self.order.topic, 0, message)
            latencies[number] = time.perf_counter_ns() - due

        await _paced(schedule, send)
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    async def _end_to_end(self, begin: Begin) -> Done:
        await self._connect(create=1)
        await self._send([SendMessage(self.stamped(0))])
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies: list[int] = []
        reader = asyncio.ensure_future(self._receive(schedule.count, latencies))
        waiting: list[SendMessage] = []
        sending = asyncio.Lock()

        async def send(_number: int, due: int) -> None:
            waiting.append(SendMessage(self.stamped(due)))
            async with sending:
                # What came while the last request was under way goes together, as it would
                # with the client's own producer.
                batch = waiting[:]
                waiting.clear()
                if batch:
                    await self._send(batch)

        await _paced(schedule, send)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await reader
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    async def _receive(self, count: int, latencies: list[int]) -> None:
        offset = 1
        while len(latencies) < count:
            messages = await self._poll(offset, BATCH)
            if not messages:
                await asyncio.sleep(EMPTY_POLL_SECONDS)
            for message in messages:
                (due,) = STAMP.unpack_from(message.payload())
                latencies.append(time.perf_counter_ns() - due)
                offset = message.offset() + 1

    async def _many(self, begin: Begin) -> Done:
        creation = time.perf_counter()
        await self._connect(create=self.order.partitions)
        creation = time.perf_counter() - creation
        batch = self._batch()[:10]
        sent = 0
        began = begin()
        end = began + self.order.seconds
        while sent < self.order.count_max and time.perf_counter() < end:
            await self._send(batch, sent // len(batch) % self.order.partitions)
            sent += len(batch)
        seconds = time.perf_counter() - began
        return Done(sent, seconds, extra={"creation_seconds": creation})

    def _batch(self) -> list[SendMessage]:
        size = min(BATCH, max(1, BATCH_BYTES_MAX // self.order.value_bytes))
        return [SendMessage(self.value) for _ in range(size)]

    async def _send(self, batch: list[SendMessage], partition: int = 0) -> None:
        await self._client.send_messages(STREAM, self.order.topic, partition, batch)

    async def _poll(self, offset: int, count: int) -> list[Any]:
        return await self._client.poll_messages(
            STREAM,
            self.order.topic,
            consumer=Consumer.Single(STREAM),
            polling_strategy=PollingStrategy.Offset(offset),
            count=count,
            auto_commit=False,
            partition_id=0,
        )

    async def _new_client(self) -> IggyClient:
        client = IggyClient(TcpConfig(server_address=self.order.address, nodelay=True))
        await client.connect()
        await client.login_user(USER, PASSWORD)
        return client

    async def _connect(self, *, create: int = 0) -> None:
        """Connect, log in and create the topic with so many partitions, where it is missing."""
        self._client = await self._new_client()
        if create:
            with suppress(RuntimeError):  # it is there already
                await self._client.create_stream(STREAM)
            if await self._client.get_topic(STREAM, self.order.topic) is None:
                options = self.order.topic_options or None
                await self._client.create_topic(STREAM, self.order.topic, create, options=options)


async def _together(workers: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker)


async def _paced(schedule: Schedule, send: Any) -> None:
    """Start `send` when it is due. An event loop's own timers are too coarse for that."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:

        def start(work: Coroutine[Any, Any, None]) -> None:
            group.create_task(work)

        def due(number: int, due_ns: int) -> None:
            loop.call_soon_threadsafe(start, send(number, due_ns))

        await asyncio.to_thread(follow, schedule, due)
