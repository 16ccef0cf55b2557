"""The producer's side of Pulsar: entries to many topics, with no wait for each receipt.

Where a connection fails, or a topic moves, all that has no receipt is sent again in its order. A
broker that knows producers by their names and numbers (`brokerDeduplicationEnabled`) stores it
once, any other may have stored it before.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.pulsar.connection import RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandProducer,
    CommandSend,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.clients.asking import Ask
    from penstock.clients.pulsar.client import PulsarClient
    from penstock.clients.pulsar.connection import BrokerConnection
    from penstock.session import Buffer

IN_FLIGHT_BYTES: Final = 8 << 20
"""Entries that wait for their receipts, which are kept to be sent again."""


class Sender(NamedTuple):
    """Who sends."""

    name: str
    """Of its producers: one of a name is let into a topic."""
    first: int
    """The number of the first message to each topic."""


class Outgoing(NamedTuple):
    """One entry, and where it goes."""

    topic: str
    """One without partitions, or one partition."""
    first: int
    """The sequence number of its first message."""
    messages: int
    entry: Buffer

    @property
    def last(self) -> int:
        return self.first + self.messages - 1


class Producers:
    """One producer for each topic that is written to, all of the same name.

    They end with the client's connections.
    Methods raise RefusedError for what a broker refused, and OSError as `ask` does.
    """

    def __init__(self, client: PulsarClient, name: str, ask: Ask) -> None:
        self._client = client
        self._name = name
        self._ask = ask
        self._open: dict[str, _Producer] = {}
        self._unanswered: deque[Outgoing] = deque()
        self._posted = 0
        self._bytes = 0

    def send(self, outgoing: Outgoing) -> None:
        """Send an entry; what is refused may be raised later."""
        self._unanswered.append(outgoing)
        self._bytes += len(outgoing.entry)
        self._ask(lambda: self._go_on(IN_FLIGHT_BYTES))

    def flush(self) -> None:
        """Return when all that was sent is safe."""
        self._ask(lambda: self._go_on(0))

    def _go_on(self, in_flight: int) -> None:
        """Send what is not sent, and hear receipts until no more than so many bytes have none."""
        try:
            while self._posted < len(self._unanswered):
                outgoing = self._unanswered[self._posted]
                self._producer(outgoing.topic).send(outgoing)
                self._posted += 1
            while self._bytes > in_flight:
                outgoing = self._unanswered[0]
                self._producer(outgoing.topic).hear()
                self._unanswered.popleft()
                self._posted -= 1
                self._bytes -= len(outgoing.entry)
        except OSError:
            # Receipts of these connections are not heard any more.
            self._posted = 0
            self._open.clear()
            self._client.close()
            raise

    def _producer(self, topic: str) -> _Producer:
        found = self._open.get(topic)
        if found is None:
            found = self._open[topic] = _Producer(self._client.owner(topic), topic, self._name)
        return found


class _Producer:
    """One topic's, on the connection to the broker that has the topic."""

    def __init__(self, connection: BrokerConnection, topic: str, name: str) -> None:
        self._connection = connection
        self._id = connection.next_id()
        asked = CommandProducer(topic=topic, producer_id=self._id, request_id=0, producer_name=name)
        try:
            connection.ask(BaseCommand(type=BaseCommand.PRODUCER, producer=asked))
        except RefusedError as error:
            if error.code == ServerError.ProducerBusy:
                # An earlier attempt's connection, of whose end the broker will hear.
                raise ConnectionError(str(error)) from error
            raise

    def send(self, outgoing: Outgoing) -> None:
        sent = CommandSend(
            producer_id=self._id,
            sequence_id=outgoing.first,
            highest_sequence_id=outgoing.last,
            num_messages=outgoing.messages,
        )
        self._connection.send(BaseCommand(type=BaseCommand.SEND, send=sent), outgoing.entry)

    def hear(self) -> None:
        self._connection.receipt(self._id)
