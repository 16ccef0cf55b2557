"""A transactional producer and consumer over Pulsar's protocol, in a process of its own.

    python pulsar_transaction_client.py write 127.0.0.1:6650 topic 4 name
    python pulsar_transaction_client.py left 127.0.0.1:6650 topic 4 name

It writes a history as `transaction_histories.py` describes it, until SIGTERM. Each transaction
acknowledges the message of its own number of a topic of its writer's name; the second form prints
the numbers that are not acknowledged. What a lost connection leaves unanswered is asked again, in
the same transaction: everything in one may be asked twice.
"""

from __future__ import annotations

import itertools
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.pulsar.wire.frames import encode_payload_command, parse_frame
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandConnect,
    CommandEndTxn,
    CommandFlow,
    CommandGetLastMessageId,
    CommandNewTxn,
    CommandPong,
    CommandProducer,
    CommandSend,
    CommandSubscribe,
    MessageIdData,
    Subscription,
    TxnAction,
)
from penstock.records.pulsar.entry import build_entry, parse_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata
from transaction_client import tell

PAUSE_SECONDS = 0.002
RETRY_SECONDS = 0.05
ANSWER_SECONDS = 30
TRANSACTION_TIMEOUT_MS = 20_000
SUBSCRIPTION = "s"


class RefusedError(Exception):
    """The broker said no; it would say so again."""


class Connection:
    """Asks one thing after another. Raises OSError where the connection is lost."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), ANSWER_SECONDS)
        self._read = self._socket.makefile("rb")
        connect = CommandConnect(client_version="test", protocol_version=19)
        self.ask(BaseCommand(type=BaseCommand.CONNECT, connect=connect))

    def say(self, command: BaseCommand, body: bytes = b"") -> None:
        self._socket.sendall(encode_payload_command(command, len(body)) + body)

    def ask(self, command: BaseCommand, body: bytes = b"") -> Any:
        """Return the next thing that the broker says. Raises RefusedError."""
        self.say(command, body)
        return self.hear()[0]

    def hear(self) -> tuple[Any, bytes]:
        """Return the next thing, and what stands behind it."""
        while True:
            head = self._exactly(4)
            frame = parse_frame(memoryview(head + self._exactly(int.from_bytes(head))))
            kind = frame.command.type
            heard = getattr(frame.command, BaseCommand.DESCRIPTOR.fields_by_number[kind].name)
            if kind == BaseCommand.PING:
                self.say(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))
            elif kind in {BaseCommand.ERROR, BaseCommand.SEND_ERROR} or getattr(heard, "error", 0):
                raise RefusedError(heard.message)
            else:
                return heard, bytes(frame.entry)

    def close(self) -> None:
        self._read.close()
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = self._read.read(size)
        if len(data) < size:
            raise ConnectionResetError
        return data


class Session:
    """A connection that comes back, with its producers and its consumer."""

    def __init__(self, address: str, name: str) -> None:
        self._address = address
        self._name = name
        self._connection: Connection | None = None
        self._producers: dict[str, int] = {}
        self._consumer_ledger: int | None = None

    def again(self, step: Callable[[Connection], Any]) -> Any:
        """Do a step until it is answered, over as many connections as it takes."""
        while True:
            try:
                if self._connection is None:
                    self._producers.clear()
                    self._consumer_ledger = None
                    self._connection = Connection(self._address)
                return step(self._connection)
            except OSError:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                time.sleep(RETRY_SECONDS)

    def send(self, topic: str, sequence: int, payload: bytes, **transaction: int) -> Any:
        """Send a message, again until its receipt comes; return that."""
        metadata = MessageMetadata(
            producer_name=self._name,
            sequence_id=sequence,
            publish_time=time.time_ns() // 1_000_000,
        )

        def step(connection: Connection) -> Any:
            number = self._producer(connection, topic)
            sent = CommandSend(producer_id=number, sequence_id=sequence, **transaction)
            command = BaseCommand(type=BaseCommand.SEND, send=sent)
            return connection.ask(command, bytes(build_entry(metadata, payload)))

        return self.again(step)

    def subscribed(self, connection: Connection, topic: str) -> None:
        """Have a consumer on this connection."""
        if self._consumer_ledger is not None:
            return
        subscribe = CommandSubscribe(
            topic=topic,
            subscription=SUBSCRIPTION,
            subType=CommandSubscribe.Shared,
            consumer_id=1,
            request_id=1,
            initialPosition=CommandSubscribe.Earliest,
        )
        connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe))
        self._consumer_ledger = 0

    def _producer(self, connection: Connection, topic: str) -> int:
        number = self._producers.get(topic)
        if number is None:
            number = len(self._producers)
            made = CommandProducer(
                topic=topic, producer_id=number, request_id=1, producer_name=self._name
            )
            connection.ask(BaseCommand(type=BaseCommand.PRODUCER, producer=made))
            self._producers[topic] = number
        return number


class Writer:
    """One transaction after another, committed or aborted as chance has it."""

    def __init__(self, address: str, topic: str, partitions: int, name: str) -> None:
        self._session = Session(address, name)
        self._topics = [f"{topic}-partition-{each}" for each in range(partitions)]
        self._input = f"input-{name}"
        self._name = name
        self._chance = random.Random(name)
        self._sequences = dict.fromkeys(self._topics, 0)
        self._ledger = 0

    def run(self) -> None:
        stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        for number in itertools.count(1):
            if stopping.is_set():
                return
            try:
                self._transaction(number)
            except RefusedError as refusal:
                sys.stderr.write(f"{self._name}/{number}: {refusal}\n")
            time.sleep(PAUSE_SECONDS)

    def _transaction(self, number: int) -> None:
        name = f"{self._name}/{number}"
        begun = self._ask(
            BaseCommand.NEW_TXN, newTxn=CommandNewTxn(txn_ttl_millis=TRANSACTION_TIMEOUT_MS, **ID)
        )
        its = {
            "txnid_least_bits": begun.txnid_least_bits,
            "txnid_most_bits": begun.txnid_most_bits,
        }
        topics = self._chance.choices(self._topics, k=self._chance.randint(1, 6))
        added = CommandAddPartitionToTxn(partitions=sorted(set(topics)), **ID, **its)
        self._ask(BaseCommand.ADD_PARTITION_TO_TXN, addPartitionToTxn=added)
        for message, topic in enumerate(topics):
            value = f"{name}/{message}"
            tell("invoked", "-", "-", value)
            self._sequences[topic] += 1
            self._session.send(topic, self._sequences[topic], value.encode(), **its)
        self._acknowledge(number, its)
        if self._chance.random() < 0.25:
            self._end(TxnAction.ABORT, its)
            tell("aborted", "-", "-", name)
        else:
            tell("committing", "-", "-", name)
            self._end(TxnAction.COMMIT, its)
            tell("committed", "-", "-", name)

    def _acknowledge(self, number: int, its: dict[str, int]) -> None:
        while self._filled <= number + 1:  # One more, for `left` to end with.
            self._fill()
        self._session.again(lambda connection: self._session.subscribed(connection, self._input))
        subscription = Subscription(topic=self._input, subscription=SUBSCRIPTION)
        added = CommandAddSubscriptionToTxn(subscription=[subscription], **ID, **its)
        self._ask(BaseCommand.ADD_SUBSCRIPTION_TO_TXN, addSubscriptionToTxn=added)
        ack = CommandAck(
            consumer_id=1,
            ack_type=CommandAck.Individual,
            message_id=[MessageIdData(ledgerId=self._ledger, entryId=number)],
            **ID,
            **its,
        )

        def step(connection: Connection) -> None:
            self._session.subscribed(connection, self._input)
            connection.ask(BaseCommand(type=BaseCommand.ACK, ack=ack))

        self._session.again(step)

    _filled = 0

    def _fill(self) -> None:
        """Write a message that a transaction can acknowledge; its offset is its number."""
        receipt = self._session.send(self._input, self._filled, b"%d" % self._filled)
        if receipt.message_id.ledgerId < 1 << 62:  # Else it was there, and sent again.
            self._ledger = receipt.message_id.ledgerId
        self._filled += 1

    def _end(self, action: TxnAction.ValueType, its: dict[str, int]) -> None:
        self._ask(BaseCommand.END_TXN, endTxn=CommandEndTxn(txn_action=action, **ID, **its))

    def _ask(self, kind: BaseCommand.Type.ValueType, **part: Any) -> Any:
        return self._session.again(
            lambda connection: connection.ask(BaseCommand(type=kind, **part))
        )


ID = {"request_id": 1}


def left(address: str, name: str) -> list[int]:
    """Return the numbers of all messages that are not acknowledged, of which the last is one."""
    connection = Connection(address)
    Session(address, name).subscribed(connection, f"input-{name}")
    asked = CommandGetLastMessageId(consumer_id=1, **ID)
    command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId=asked)
    last = connection.ask(command).last_message_id.entryId
    flow = CommandFlow(consumer_id=1, messagePermits=last + 1)
    connection.say(BaseCommand(type=BaseCommand.FLOW, flow=flow))
    numbers = [-1]
    while numbers[-1] != last:
        _, entry = connection.hear()
        numbers.append(int(bytes(parse_entry(memoryview(entry)).payload)))
    connection.close()
    return numbers[1:]


def main() -> None:
    verb, address, topic, partitions, name = sys.argv[1:]
    if verb == "write":
        Writer(address, topic, int(partitions), name).run()
    else:
        sys.stdout.writelines(f"{number}\n" for number in left(address, name))


if __name__ == "__main__":
    main()
