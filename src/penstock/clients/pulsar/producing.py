"""The producer's side of Pulsar: entries to many topics, with no wait for each receipt.

Where a connection fails, or a topic moves, all that has no receipt is sent again in its order. A
broker that knows producers by their names and numbers (`brokerDeduplicationEnabled`) stores it
once, any other may have stored it before. So in a transaction nothing is sent again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.pulsar.connection import RefusedError
from penstock.clients.pulsar.transactions import Coordinators
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
    from penstock.clients.pulsar.transactions import TransactionId
    from penstock.records.pulsar.metadata_pb2 import MessageMetadata
    from penstock.session import Buffer

IN_FLIGHT_BYTES: Final = 8 << 20
"""Entries that wait for their receipts, which are kept to be sent again."""


class LostReceiptError(Exception):
    """Nobody knows whether all entries of a transaction are there: it can't be committed."""


class Sender(NamedTuple):
    """Who sends."""

    name: str
    """Of its producers: one of a name is let into a topic."""
    first: int = 0
    """The number of the first message to each topic."""
    transaction: TransactionId | None = None
    """What all is part of; it ends by somebody else."""

    def sign(self, said: CommandSend | MessageMetadata) -> None:
        """Have a command, or the metadata of its entry, name the transaction."""
        if self.transaction is not None:
            said.txnid_most_bits, said.txnid_least_bits = self.transaction


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

    They end with the client's connections. Methods raise RefusedError for what a broker refused,
    LostReceiptError, and OSError as `ask` does.
    """

    def __init__(self, client: PulsarClient, sender: Sender, ask: Ask) -> None:
        self._client = client
        self._sender = sender
        self._ask = ask
        self._coordinators = Coordinators(client)
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
            for each in self._open.values():
                each.catch_up()
            while self._posted < len(self._unanswered):
                outgoing = self._unanswered[self._posted]
                producer = self._producer(outgoing.topic)
                self._posted += 1
                producer.send(outgoing)
            while self._bytes > in_flight:
                self._hear()
        except OSError as error:
            # A broker that closes a connection in a pause has answered what came before.
            while self._posted and self._first_open().has_heard(self._unanswered[0]):
                self._hear()
            if self._posted and self._sender.transaction is not None:
                raise LostReceiptError(str(error)) from error
            # Receipts of these connections are not heard any more.
            self._posted = 0
            self._open.clear()
            self._client.close()
            raise

    def _hear(self) -> None:
        """Hear the receipt of the first entry that has none."""
        self._first_open().hear(self._unanswered[0])
        self._posted -= 1
        self._bytes -= len(self._unanswered.popleft().entry)

    def _first_open(self) -> _Producer:
        return self._open[self._unanswered[0].topic]

    def _producer(self, topic: str) -> _Producer:
        found = self._open.get(topic)
        if found is None:
            if self._sender.transaction is not None:
                self._coordinators.add(self._sender.transaction, topic)
            found = self._open[topic] = _Producer(self._client.owner(topic), topic, self._sender)
        return found


class _Producer:
    """One topic's, on the connection to the broker that has the topic."""

    def __init__(self, connection: BrokerConnection, topic: str, sender: Sender) -> None:
        self._connection = connection
        self._sender = sender
        self._id = connection.next_id()
        asked = CommandProducer(
            topic=topic,
            producer_id=self._id,
            request_id=0,
            producer_name=sender.name,
            txn_enabled=sender.transaction is not None,
        )
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
        self._sender.sign(sent)
        self._connection.send(BaseCommand(type=BaseCommand.SEND, send=sent), outgoing.entry)

    def hear(self, outgoing: Outgoing) -> None:
        """Return when an entry is safe, the first of which nothing was heard."""
        self._connection.receipt(self._id, outgoing.first)

    def has_heard(self, outgoing: Outgoing) -> bool:
        """Whether the receipt of an entry has come."""
        return self._connection.has_receipt(self._id, outgoing.first)

    def catch_up(self) -> None:
        self._connection.catch_up()
