"""A Pulsar client's connection and its calls, as handlers see them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from penstock.limits import PULSAR_CLOSED_PRODUCERS
from penstock.pulsar.keep_alive import KeepAlive
from penstock.pulsar.wire import frames
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandCloseProducer,
)
from penstock.requests import call

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.pulsar.consumer import PulsarConsumer
    from penstock.pulsar.producers import Producer, Producers
    from penstock.pulsar.wire.pulsar_api_pb2 import CommandProducer, CommandSubscribe
    from penstock.session import Transport

NO_REQUEST: Final = (1 << 64) - 1
"""The request id of what the broker says unasked."""


class Client(call.Client):
    """The client at the other end of one connection, with its producers and consumers.

    `all_producers` are those of all connections. `opening_producers` and `opening_consumers` are
    the requests that were not answered yet.
    """

    def __init__(self, broker: Broker, transport: Transport, all_producers: Producers) -> None:
        super().__init__(broker, transport)
        self.all_producers = all_producers
        self.protocol_version = 0
        self.client_version = ""
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, PulsarConsumer] = {}
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
        for producer in tuple(self.producers.values()):
            self.all_producers.remove(producer)
        for consumer in tuple(self.consumers.values()):
            self.broker.subscriptions.leave(consumer.subscription, consumer.member)
        self.producers.clear()
        self.consumers.clear()

    def send(self, command: BaseCommand) -> None:
        """Tell the client something that it did not ask for."""
        self.transport.write([frames.encode_command(command)])

    def drop_producer(self, producer: Producer) -> None:
        """A producer is out: its client creates it again if it wants to."""
        if self.producers.pop(producer.id, None) is None:
            return
        self.closed_producers.append(producer.id)
        close = CommandCloseProducer(producer_id=producer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=close))

    def drop_consumer(self, consumer: PulsarConsumer) -> None:
        """A consumer was detached: its client subscribes again if it wants to."""
        if self.consumers.get(consumer.id) is not consumer:
            return
        del self.consumers[consumer.id]
        close = CommandCloseConsumer(consumer_id=consumer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=close))

    async def is_alive(self) -> bool:
        """Whether the client says anything soon; see KeepAlive."""
        if self.is_gone:
            return False
        answers = await self.keep_alive.is_alive()
        return answers and not self.is_gone


class Call(call.Call[Client]):
    """One request's circumstances; the version is what client and broker agreed on."""

    __slots__ = ("entry",)

    entry: memoryview
    """What follows the command in its frame: a view of it, empty for most commands."""
