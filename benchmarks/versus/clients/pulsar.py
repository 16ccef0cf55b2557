"""pulsar-client, whose core is Pulsar's C++ client; floods use that core without Python."""

from __future__ import annotations

import itertools
import threading
import time
from functools import cached_property
from typing import Any, Final

import pulsar

from versus.clients.client import DEADLINE_SECONDS, STAMP, Begin, Client, LoadError
from versus.clients.libpulsar import Library
from versus.order import Done
from versus.schedule import Schedule, follow

ACKNOWLEDGE_EVERY: Final = 1000
SENT_AT_ONCE: Final = 10
"""Messages between two looks at the clock, and for each of many producers in turn."""
BATCHED: Final = {"batching_enabled": True}
"""The Python client's own default is no batches; with them on, its limits stay the default ones."""
TUNED: Final = BATCHED | {
    "max_pending_messages": 20_000,
    "batching_max_messages": 10_000,
    "batching_max_allowed_size_in_bytes": 1 << 20,
    "batching_max_publish_delay_ms": 20,
}
TUNED_QUEUE: Final = 20_000
TIMEOUT_MS: Final = DEADLINE_SECONDS * 1000


class PulsarClient(Client):
    _patience_seconds = DEADLINE_SECONDS

    def first(self) -> None:
        deadline = time.perf_counter() + DEADLINE_SECONDS
        self._patience_seconds = 1
        while True:
            try:
                self._producer(self.order.topic).send(self.value)
            except pulsar.PulsarException:
                # A client waits longer after each attempt, up to a minute: a fresh one does not.
                if time.perf_counter() > deadline:
                    raise
                del self._client
            else:
                return

    def produce(self, begin: Begin) -> Done:
        library = Library(self.order.address)
        producer = library.producer(self.order.topic, TUNED if self.order.tuned else BATCHED)
        return self._flood(library, [producer], begin)

    def consume(self, begin: Begin) -> Done:
        consumer = self._client.subscribe(
            self.order.topic,
            self._subscription,
            initial_position=pulsar.InitialPosition.Earliest,
            receiver_queue_size=TUNED_QUEUE if self.order.tuned else 1000,
        )
        began = begin()
        for number in range(1, self.order.count + 1):
            message = consumer.receive(TIMEOUT_MS)
            if number % ACKNOWLEDGE_EVERY == 0:
                consumer.acknowledge_cumulative(message)
        return Done(self.order.count, time.perf_counter() - began)

    def requests(self, begin: Begin) -> Done:
        producer = self._producer(self.order.topic, max_pending_messages=self.order.window)
        check = _Check()
        began = begin()
        sent = 0
        while time.perf_counter() < began + self.order.seconds:
            producer.send_async(self.value, check)  # waits while the window is full
            sent += 1
        producer.flush()
        check.raise_failure()
        return Done(sent, time.perf_counter() - began)

    def publish(self, begin: Begin) -> Done:
        producer = self._producer(self.order.topic, max_pending_messages=50_000)
        producer.send(self.value)
        check = _Check()
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies = [0] * schedule.count

        def send(number: int, due: int) -> None:
            def delivered(result: Any, message_id: Any) -> None:
                latencies[number] = time.perf_counter_ns() - due
                check(result, message_id)

            producer.send_async(self.value, delivered)

        follow(schedule, send)
        producer.flush()
        check.raise_failure()
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    def end_to_end(self, begin: Begin) -> Done:
        # One millisecond is the least delay that the client takes for its batches.
        producer = self._producer(
            self.order.topic,
            max_pending_messages=50_000,
            batching_max_publish_delay_ms=1,
            **BATCHED,
        )
        consumer = self._client.subscribe(self.order.topic, self._subscription)
        producer.send(self.value)
        consumer.acknowledge(consumer.receive(TIMEOUT_MS))
        check = _Check()
        began = begin()
        schedule = Schedule(time.perf_counter_ns(), self.order.rate, self.order.seconds)
        latencies: list[int] = []
        reader = threading.Thread(target=_receive, args=(consumer, schedule.count, latencies))
        reader.start()
        follow(schedule, lambda _, due: producer.send_async(self.stamped(due), check))
        producer.flush()
        reader.join()
        check.raise_failure()
        if len(latencies) != schedule.count:
            raise LoadError(f"{schedule.count - len(latencies)} messages did not arrive")
        seconds = time.perf_counter() - began
        return Done(schedule.count, seconds, schedule.settled(latencies))

    def many(self, begin: Begin) -> Done:
        library = Library(self.order.address)
        creation = time.perf_counter()
        names = [f"{self.order.topic}-{number}" for number in range(self.order.partitions)]
        producers = [library.producer(name, BATCHED) for name in names]
        creation = time.perf_counter() - creation
        done = self._flood(library, producers, begin)
        done.extra["creation_seconds"] = creation
        return done

    def _flood(self, library: Library, producers: list[Any], begin: Begin) -> Done:
        order = self.order
        began = begin()
        end = began + order.seconds
        sent = 0
        for producer in itertools.cycle(producers):
            library.send(producer, self.value, SENT_AT_ONCE)
            sent += SENT_AT_ONCE
            if sent >= order.count_max or time.perf_counter() >= end:
                break
        for producer in producers:
            library.flush(producer)
        return Done(sent, time.perf_counter() - began)

    def _producer(self, topic: str, **settings: Any) -> pulsar.Producer:
        fixed = {"block_if_queue_full": True, "send_timeout_millis": TIMEOUT_MS}
        return self._client.create_producer(topic, **fixed, **settings)

    @property
    def _subscription(self) -> str:
        # A subscription goes on where it ended; a topic that is read twice needs two of them.
        return f"versus-{self.order.kind}"

    @cached_property
    def _client(self) -> pulsar.Client:
        return pulsar.Client(
            f"pulsar://{self.order.address}",
            operation_timeout_seconds=self._patience_seconds,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )


class _Check:
    """Remembers the first failure that the client's own thread reports."""

    def __init__(self) -> None:
        self._failure: Any = None

    def __call__(self, result: Any, _message_id: Any) -> None:
        if result is not pulsar.Result.Ok and result != pulsar.Result.Ok:
            self._failure = self._failure or result

    def raise_failure(self) -> None:
        if self._failure:
            raise LoadError(f"a message was refused: {self._failure}")


def _receive(consumer: pulsar.Consumer, count: int, latencies: list[int]) -> None:
    for _ in range(count):
        message = consumer.receive(TIMEOUT_MS)
        (due,) = STAMP.unpack_from(message.data())
        latencies.append(time.perf_counter_ns() - due)
        consumer.acknowledge(message)
