"""A Pulsar client's connection and its calls, as handlers see them."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from penstock.limits import KIB, PULSAR_CLOSED_PRODUCERS
from penstock.memory import text_bytes
from penstock.pace import Pace
from penstock.pulsar.keep_alive import KeepAlive
from penstock.pulsar.key_sharing import key_bytes
from penstock.pulsar.newcomers import Newcomers
from penstock.pulsar.wire import frames
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandCloseProducer,
)
from penstock.requests import call
from penstock.tasks import start_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.broker import Broker
    from penstock.pulsar.consumer import PulsarConsumer
    from penstock.pulsar.producers import Producer, Producers
    from penstock.pulsar.transient import TransientConsumer, TransientProducer, TransientTopics
    from penstock.pulsar.wire.pulsar_api_pb2 import CommandProducer, CommandSubscribe
    from penstock.session import Transport

NO_REQUEST: Final = (1 << 64) - 1
"""The request id of what the broker says unasked."""
_CLOSED_AT_ONCE: Final = 4
"""Consumers and producers of a client that is gone; its others are closed in steps."""
_CONSUMER_BYTES: Final = 2 * KIB
_PRODUCER_BYTES: Final = 1 * KIB
"""About what each takes of memory, besides its name; a producer where it waits for its turn."""


class Watcher(Protocol):
    """Something that tells the client what changes; see penstock.pulsar.topic_watcher."""

    def stop(self) -> None:
        """The client wants to know no more, or is gone."""


class Client(call.Client):
    """The client at the other end of one connection, with its producers and consumers.

    `all_producers` are those of all connections. `opening_producers` and `opening_consumers` are
    the requests that were not answered yet.
    """

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        all_producers: Producers,
        transient_topics: TransientTopics,
    ) -> None:
        super().__init__(broker, transport)
        self.all_producers = all_producers
        self.protocol_version = 0
        self.client_version = ""
        self.wants_entry_metadata = False
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, PulsarConsumer] = {}
        self.transient_topics = transient_topics
        self.transient_producers: dict[int, TransientProducer] = {}
        self.transient_consumers: dict[int, TransientConsumer] = {}
        self.newcomers = Newcomers()
        self.watchers: dict[int, Watcher] = {}
        self.listing = asyncio.Lock()
        """Held by the one request that lists a namespace: each has all names in memory."""
        self.opening_producers: dict[int, CommandProducer] = {}
        self.opening_consumers: dict[int, CommandSubscribe] = {}
        self.closed_producers: deque[int] = deque(maxlen=PULSAR_CLOSED_PRODUCERS)
        self.keep_alive = KeepAlive(self.send, transport.close)
        self.is_gone = False
        """Whether the connection is: what was asked on it is nobody's wish any more."""

    @property
    def broker_address(self) -> str:
        """Where the client reaches this broker, as `host:port`."""
        host, port = self.transport.local_address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def gone(self) -> None:
        """The connection is closed: give up what the client had."""
        self.is_gone = True
        self.keep_alive.stop()
        closing = self._closing_all()
        if sum(1 for _ in islice(closing, _CLOSED_AT_ONCE)) == _CLOSED_AT_ONCE:
            start_uninterrupted(Pace(untimed=1).through(closing), "closing what a client had open")

    def _closing_all(self) -> Iterator[None]:
        for producer_id in (*self.producers, *self.transient_producers):
            self.close_producer(producer_id)
            yield
        for consumer_id in (*self.consumers, *self.transient_consumers):
            self.close_consumer(consumer_id)
            yield
        for watcher_id in tuple(self.watchers):
            self.close_watcher(watcher_id)

    def send(self, command: BaseCommand) -> None:
        """Tell the client something that it did not ask for."""
        self.transport.write([frames.encode_command(command)])

    def close_producer(self, producer_id: int) -> None:
        """The client has closed a producer, if it is there."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            self._forget_producer(producer)
            self.all_producers.remove(producer)
        transient = self.transient_producers.pop(producer_id, None)
        if transient is not None:
            self.transient_topics.remove_producer(transient)
            self.closed_producers.append(producer_id)
            self.held.grow(-producer_bytes(transient.name))

    def close_consumer(self, consumer_id: int) -> None:
        """The client has closed a consumer, if it is there."""
        consumer = self.consumers.get(consumer_id)
        if consumer is not None:
            self.forget_consumer(consumer)
            self.broker.subscriptions.leave(consumer.subscription, consumer.member)
        transient = self.transient_consumers.pop(consumer_id, None)
        if transient is not None:
            self.newcomers.remove(consumer_id)
            self.transient_topics.remove_consumer(transient)
            self.held.grow(-transient.size)

    def close_watcher(self, watcher_id: int) -> None:
        """The client has closed a watcher, if it is there."""
        watcher = self.watchers.pop(watcher_id, None)
        if watcher is not None:
            watcher.stop()

    def drop_producer(self, producer: Producer) -> None:
        """A producer is out: its client creates it again if it wants to."""
        if self.producers.get(producer.id) is not producer:
            return
        self._forget_producer(producer)
        close = CommandCloseProducer(producer_id=producer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=close))

    def drop_consumer(self, consumer: PulsarConsumer) -> None:
        """A consumer was detached: its client subscribes again if it wants to."""
        if self.consumers.get(consumer.id) is not consumer:
            return
        self.forget_consumer(consumer)
        close = CommandCloseConsumer(consumer_id=consumer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=close))

    def forget_consumer(self, consumer: PulsarConsumer) -> None:
        """The consumer has no subscription any more."""
        del self.consumers[consumer.id]
        self.newcomers.remove(consumer.id)
        self.held.grow(-consumer.size)

    def _forget_producer(self, producer: Producer) -> None:
        del self.producers[producer.id]
        self.closed_producers.append(producer.id)
        self.held.grow(-producer_bytes(producer.name))

    async def is_alive(self) -> bool:
        """Whether the client says anything soon; see KeepAlive."""
        if self.is_gone:
            return False
        answers = await self.keep_alive.is_alive()
        return answers and not self.is_gone


def consumer_bytes(name: str, request: CommandSubscribe) -> int:
    """Return about how much memory a consumer of this name takes."""
    return _CONSUMER_BYTES + text_bytes(name) + key_bytes(request)


def producer_bytes(name: str) -> int:
    """Return about how much memory a producer of this name takes."""
    return _PRODUCER_BYTES + text_bytes(name)


class Call(call.Call[Client]):
    """One request's circumstances; the version is what client and broker agreed on."""

    __slots__ = ("entry",)

    entry: memoryview
    """What follows the command in its frame: a view of it, empty for most commands."""
