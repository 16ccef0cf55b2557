"""What brokers of Pulsar say unasked, and what they refuse for a moment only."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from penstock.clients.access import LoginError
from penstock.clients.pulsar import connection as under_test
from penstock.clients.pulsar.client import PulsarClient
from penstock.clients.pulsar.connection import BrokerConnection, RefusedError
from penstock.clients.pulsar.producing import Outgoing, Producers, Sender
from penstock.pipeline.source.patience import Patience
from penstock.pulsar.wire.frames import encode_command
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandConnected,
    CommandError,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandPing,
    CommandProducerSuccess,
    CommandSendError,
    CommandSendReceipt,
    ServerError,
)

Answer = Callable[..., PulsarClient]

CONNECTED = BaseCommand(
    type=BaseCommand.CONNECTED, connected=CommandConnected(server_version="test")
)
PING = BaseCommand(type=BaseCommand.PING, ping=CommandPing())
MOVED = BaseCommand(
    type=BaseCommand.CLOSE_CONSUMER,
    close_consumer=CommandCloseConsumer(consumer_id=1, request_id=1),
)
TWO = BaseCommand(
    type=BaseCommand.PARTITIONED_METADATA_RESPONSE,
    partitionMetadataResponse=CommandPartitionedTopicMetadataResponse(
        partitions=2, request_id=1, response=CommandPartitionedTopicMetadataResponse.Success
    ),
)


PRODUCER = 2
LOOKED_UP = BaseCommand(
    type=BaseCommand.LOOKUP_RESPONSE,
    lookupTopicResponse=CommandLookupTopicResponse(
        brokerServiceUrl="pulsar://h:1", request_id=1, response=CommandLookupTopicResponse.Connect
    ),
)
PRODUCING = BaseCommand(
    type=BaseCommand.PRODUCER_SUCCESS,
    producer_success=CommandProducerSuccess(request_id=3, producer_name="p"),
)


def confirmed(sequence: int) -> BaseCommand:
    receipt = CommandSendReceipt(producer_id=PRODUCER, sequence_id=sequence)
    return BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt)


def refusal(code: ServerError.ValueType, number: int = 1) -> BaseCommand:
    error = CommandError(request_id=number, error=code, message="because\nof a trace")
    return BaseCommand(type=BaseCommand.ERROR, error=error)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answer]:
    """Make a client of a broker that says these commands, one connection after the other."""
    sockets: list[socket.socket] = []

    def made(*connections: list[BaseCommand]) -> PulsarClient:
        waiting = list(connections)

        def connect(*_: object) -> socket.socket:
            ours, theirs = socket.socketpair()
            sockets.extend((ours, theirs))
            theirs.sendall(b"".join(map(encode_command, waiting.pop(0))))
            return ours

        monkeypatch.setattr(under_test, "connect", connect)
        return PulsarClient("h:1")

    yield made
    for each in sockets:
        each.close()


def test_a_ping_is_answered_on_the_way_to_an_answer(answering: Answer) -> None:
    assert answering([CONNECTED, PING, TWO]).partitions("t") == 2


def test_a_topic_that_moves_is_looked_for_on_a_connection_made_anew(answering: Answer) -> None:
    client = answering([CONNECTED, MOVED], [CONNECTED, TWO])
    with pytest.raises(ConnectionError, match="gave a topic to another one"):
        client.partitions("t")
    assert client.partitions("t") == 2


def test_what_goes_well_a_moment_later_is_no_refusal(answering: Answer) -> None:
    with pytest.raises(ConnectionError, match="ServiceNotReady: because"):
        answering([CONNECTED, refusal(ServerError.ServiceNotReady)]).partitions("t")


def test_a_refusal_is_said_in_one_line(answering: Answer) -> None:
    with pytest.raises(RefusedError, match=r"^UnknownError: because$"):
        answering([CONNECTED, refusal(ServerError.UnknownError)]).partitions("t")
    with pytest.raises(LoginError, match=r"AuthenticationError: because$"):
        answering([refusal(ServerError.AuthenticationError, 0)]).partitions("t")


def test_an_entry_that_failed_is_sent_again_with_what_came_behind_it(
    answering: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt of a later one says nothing of it."""
    failed = CommandSendError(
        producer_id=PRODUCER, sequence_id=0, error=ServerError.PersistenceError, message="not now"
    )
    refused = BaseCommand(type=BaseCommand.SEND_ERROR, send_error=failed)
    opening = [CONNECTED, LOOKED_UP, PRODUCING]
    client = answering(
        [*opening, refused, confirmed(1)],
        [*opening, confirmed(0), confirmed(1)],
    )
    sent = []
    real = BrokerConnection.send

    def listening(connection: BrokerConnection, command: BaseCommand, entry: bytes = b"") -> None:
        sent.extend([command.send.sequence_id] * (command.type == BaseCommand.SEND))
        real(connection, command, entry)

    monkeypatch.setattr(BrokerConnection, "send", listening)
    producers = Producers(client, Sender("p"), Patience(answered=True).ask)
    for number in range(2):
        producers.send(Outgoing("t", number, 1, b"entry"))
    producers.flush()
    assert sent == [0, 1, 0, 1]
