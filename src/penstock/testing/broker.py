"""A broker inside the process of the tests."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import time
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from penstock.clients.kafka import record_batch
from penstock.server.config import Config
from penstock.testing import topics
from penstock.testing.faults import Effect, Fault, Faults, failure, requests_named
from penstock.testing.folder import make_folder, remove_folder
from penstock.testing.node import Node
from penstock.testing.record import as_bytes, header_list
from penstock.testing.waiting import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from penstock.testing.record import Data, Headers, Record

_POLL_SECONDS: Final = 0.003

# Where nobody set logging up, Python would print the broker's warnings.
logging.root.getChild("penstock").addHandler(logging.NullHandler())


class Penstock:
    """A broker for tests: `with Penstock() as broker:`, or `async with`, or `start` and `stop`.

    It runs on an event loop in a thread of its own, listens on free ports of 127.0.0.1, and keeps
    its data in a temporary folder that is gone after it, in memory where there is room. Any number
    of them may run at the same time. It is not usable in a process that is forked from its own;
    a client there may connect to it.

    With `flush="acknowledged"` a message is safe when the disk has it, as in production. A
    `data_folder` that is given stays.
    """

    def __init__(
        self,
        *,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        flush: Literal["written", "acknowledged"] = "written",
        data_folder: Path | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "default_partitions": default_partitions,
            "auto_create_topics": auto_create_topics,
            "flush": flush,
        }
        self._data_folder = data_folder
        self._faults = Faults()
        self._node: Node | None = None
        self._folder: Path | None = None
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def start(self) -> None:
        """Return when clients can connect. Raises RuntimeError where it runs already."""
        if self._node is not None:
            raise RuntimeError("the broker runs already")
        self._process = os.getpid()
        atexit.register(self._clean)
        try:
            if self._data_folder is None:
                self._folder = make_folder()
            ports = {"kafka_port": 0, "pulsar_port": 0, "iggy_port": 0}
            folder = self._data_folder or self._folder
            config = Config(data_folder=folder, **ports, **self._settings)  # type: ignore[arg-type]
            self._node = Node(config, self._faults.sessions)
        except BaseException:
            self._clean()
            raise

    def stop(self) -> None:
        """End the broker: its clients are cut, and its thread, sockets and files are gone after it.

        Does nothing where it does not run, and in a process that was forked from the broker's.
        """
        if self._process != os.getpid():
            return
        node, self._node = self._node, None
        try:
            if node is not None:
                node.stop()
        finally:
            self._faults.clear()
            self._clean()

    @property
    def kafka(self) -> str:
        """The address for Kafka's clients, `127.0.0.1:12345`."""
        return self._address("kafka")

    @property
    def pulsar(self) -> str:
        """The address for Pulsar's clients, `pulsar://127.0.0.1:12345`."""
        return f"pulsar://{self._address('pulsar')}"

    @property
    def iggy(self) -> str:
        """The address for Iggy's clients, `127.0.0.1:12345`. User and password are iggy and iggy.

        The client of Python takes `f"iggy://iggy:iggy@{broker.iggy}"`.
        """
        return self._address("iggy")

    @property
    def data_folder(self) -> Path:
        """Where the broker keeps its data while it runs."""
        return self._running.broker.data_folder

    # Topics. A name may be Kafka's, `stream/topic` of Iggy, or Pulsar's with or without the scheme.

    def topics(self) -> list[str]:
        """Return the Kafka names of all topics."""
        return self._running.call(topics.names(self._running.broker))

    def create_topic(self, topic: str, partitions: int | None = None) -> None:
        """Create a topic, so that the broker's defaults need not suit it.

        Raises penstock.broker.errors.BrokerError where that is refused, as when it is there.
        """
        self._running.call(topics.create(self._running.broker, topic, partitions))

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all that is known of it, if it is there."""
        self._running.call(topics.delete(self._running.broker, topic))

    def delete_namespace(self, namespace: str) -> None:
        """Delete a namespace, which Iggy calls a stream, with its topics, if it is there."""
        self._running.call(topics.delete_namespace(self._running.broker, namespace))

    def produce(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int = 0,
    ) -> Record:
        """Write one message as a Kafka client would, and return it with its offset.

        The topic is created where it is missing. Without `partition` the key chooses, as Kafka's
        clients have it, or else it is the first. Texts are written as UTF-8, and no timestamp is
        that of now. Raises penstock.broker.errors.BrokerError where it is refused.
        """
        record = record_batch.Record(
            as_bytes(value), as_bytes(key), header_list(headers), timestamp_ms
        )
        return self._running.call(topics.produce(self._running.broker, topic, record, partition))

    def records(self, topic: str) -> list[Record]:
        """Return what is in a topic, partition by partition, whichever protocol wrote it.

        A topic that is not there has none.
        """
        reader = topics.TopicReader(self._running.broker, topic)
        stored = self._running.call(reader.new())
        return [record for each in stored for record in each.records()]

    def wait_for(
        self,
        topic: str,
        count: int = 1,
        *,
        where: Callable[[Record], bool] | None = None,
        timeout: float = 10.0,
    ) -> list[Record]:
        """Return the records of a topic, or those `where` holds for, once there are `count`.

        Raises AssertionError after `timeout` seconds, which says what was there instead. Blocks:
        where the clients share the thread's event loop, use `wait_for_async`.
        """
        wanted = Wanted(topic, count, where, timeout)
        reader = topics.TopicReader(self._running.broker, topic)
        while not wanted.take(self._running.call(reader.new())):
            wanted.check(self.topics)
            time.sleep(_POLL_SECONDS)
        return wanted.found

    async def wait_for_async(
        self,
        topic: str,
        count: int = 1,
        *,
        where: Callable[[Record], bool] | None = None,
        timeout: float = 10.0,
    ) -> list[Record]:
        """Do as `wait_for` without blocking the event loop."""
        wanted = Wanted(topic, count, where, timeout)
        reader = topics.TopicReader(self._running.broker, topic)
        while not wanted.take(await asyncio.wrap_future(self._running.submit(reader.new()))):
            wanted.check(self.topics)
            await asyncio.sleep(_POLL_SECONDS)
        return wanted.found

    # Faults. Each happens to the next requests of its kind from any client, and then no more.

    def fail_next(
        self,
        request: str,
        error: str | int,
        *,
        times: int = 1,
        topic: str | None = None,
        protocol: Literal["kafka", "pulsar", "iggy"] | None = None,
    ) -> Fault:
        """Answer the next requests with an error, without carrying them out.

        `request` and `error` are called as their protocol does, in any spelling:
        `fail_next("produce", "NOT_LEADER_OR_FOLLOWER")`, `fail_next("SEND", "PersistenceError")`,
        `fail_next("send_messages", 4010)`. The protocol is needed only where several have both.
        With `topic` it happens to requests that are about that one.

        Raises LookupError for names that there are not, and ValueError.
        """
        requests, number = failure(request, error, protocol)
        return self._fault(Effect.FAIL, requests, times, topic, error=number)

    def delay_next(
        self,
        request: str,
        seconds: float,
        *,
        times: int = 1,
        topic: str | None = None,
        protocol: Literal["kafka", "pulsar", "iggy"] | None = None,
    ) -> Fault:
        """Carry the next requests out later; what their connection asks after them waits too."""
        requests = requests_named(request, protocol)
        return self._fault(Effect.DELAY, requests, times, topic, seconds=seconds)

    def disconnect_next(
        self,
        request: str,
        *,
        times: int = 1,
        carried_out: bool = False,
        topic: str | None = None,
        protocol: Literal["kafka", "pulsar", "iggy"] | None = None,
    ) -> Fault:
        """Cut the connection of the next requests, which are carried out before, or not at all.

        With `carried_out` only the answer is lost, so that a client which asks again does it twice.
        """
        effect = Effect.LOSE_ANSWER if carried_out else Effect.DISCONNECT
        return self._fault(effect, requests_named(request, protocol), times, topic)

    def disconnect_all(self) -> int:
        """Cut all connections, as a broker that restarts, and return how many there were."""
        return self._running.call(self._faults.disconnect())

    def clear_faults(self) -> None:
        """Have no fault happen any more."""
        self._faults.clear()

    def _fault(
        self,
        effect: Effect,
        requests: dict[str, str],
        times: int,
        topic: str | None,
        *,
        error: int = 0,
        seconds: float = 0.0,
    ) -> Fault:
        if times < 1:
            raise ValueError(f"a fault happens at least once, not {times} times")
        name = None if topic is None else topics.full_name(topic).kafka
        return self._faults.add(Fault(effect, requests, times, name, error, seconds))

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker does not run; use `with Penstock() as broker:`")
        return self._node

    def _address(self, protocol: str) -> str:
        return next(str(each) for each in self._running.addresses if each.protocol == protocol)

    def _clean(self) -> None:
        """Remove the data. Called at the process's end too, where nobody stopped the broker."""
        folder, self._folder = self._folder, None
        if folder is not None and self._process == os.getpid():
            remove_folder(folder)
        atexit.unregister(self._clean)
