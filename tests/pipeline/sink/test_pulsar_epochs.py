"""Goal: any Pulsar with transactions takes each row once, whoever dies between which two steps.

Method: Penstock's Pulsar port, and mostly no Spark. A driver dies by an error that nothing catches,
behind each thing that it says; then the epoch is done again by new objects. `soak` has the same
with a broker of Apache Pulsar.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from epoch_query import (
    PARTITIONS,
    ROWS,
    DeathError,
    EpochQuery,
    dies_behind_the_decision,
    expected,
    refuses_others_of_that_number,
)
from patience import PATIENCE_SECONDS, wait_until
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.pulsar.client import MessageId, PulsarClient
from penstock.clients.pulsar.connection import BrokerConnection, RefusedError
from penstock.clients.pulsar.transactions import Coordinators, TransactionId
from penstock.pipeline.sink.epochs.attempt import Attempt
from penstock.pipeline.sink.epochs.pulsar_journal import Decision, Journal, Known, known_of
from penstock.pipeline.sink.epochs.pulsar_notes import Note
from penstock.pipeline.sink.epochs.pulsar_transactions import PulsarEpochs
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.starting import ask_broker
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError
from penstock.records.pulsar.entry import read_entry
from source_rows import rows_read
from spark_topics import create

MOST_REQUESTS = 100
CHANGES = frozenset(
    {BaseCommand.ADD_PARTITION_TO_TXN, BaseCommand.END_TXN, BaseCommand.SEND, BaseCommand.ACK}
)
"""What is not as it was before, once it is heard."""


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachePulsar]:
    with ApachePulsar(tmp_path_factory.mktemp("apache"), transactions=True) as broker:
        yield broker


@pytest.fixture(params=["penstock", pytest.param("apache", marks=pytest.mark.soak)])
def query(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> EpochQuery:
    """A query that writes to a topic of its own. Whoever speaks Kafka's protocol fails."""
    topic = f"p{uuid.uuid4().hex[:8]}"
    if request.param == "apache":
        broker: ApachePulsar = request.getfixturevalue("apache")
        broker.create(topic, PARTITIONS)
        return EpochQuery(f"pulsar://{broker.address}", topic)
    server: BrokerProcess = request.getfixturevalue("shared_server")
    with KafkaClient(server.kafka) as client:
        client.create_topic(topic, PARTITIONS)

    def refuse(*_: object) -> None:
        raise AssertionError("Kafka's protocol was spoken")

    monkeypatch.setattr(ClientConnection, "_connected", refuse)
    return EpochQuery(server.pulsar, topic)


def known(query: EpochQuery) -> Known:
    with query.epochs() as epochs:
        assert isinstance(epochs, PulsarEpochs)
        return epochs._journal(query.writer).read()


def end(query: EpochQuery, transaction: TransactionId, *, committed: bool) -> None:
    with PulsarClient(query.options.servers) as client:
        Coordinators(client).end(transaction, committed=committed)


def test_an_epoch_is_visible_when_it_is_decided_and_once(query: EpochQuery) -> None:
    ask_broker(query.options)
    query.task(0, 0)  # is lost, and done again by another executor
    tasks = [query.task(0, 0, 1), query.task(0, 1)]
    query.task(0, 1, 2)  # did the same at the same time, and nobody asks for it
    assert query.values() == []
    assert query.commit(0, tasks) is True
    assert query.shows(expected(0)), "what attempts have left holds up no reader"
    assert query.tasks(0) == [], "the epoch is written, so the tasks have nothing to do"
    assert query.commit(0, []) is False
    assert query.commit(1, query.tasks(1)) is True
    assert query.shows(expected(0, 1))
    with pytest.raises(SinkError, match=r"batch 0 of .* batch 1 was: the checkpoint"):
        query.tasks(0)
    assert query.commit(2, []) is True
    assert len(known(query).begun) == 0, "what is done is forgotten"


@pytest.mark.soak
def test_spark_writes_a_batch_of_a_name_once(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka, PARTITIONS)
    rows = spark.range(90, numPartitions=2).selectExpr("CAST(id AS STRING) AS value")
    writing = rows.write.format("penstock").mode("append").option("topic", topic)
    writing = writing.option("penstock.bootstrap.servers", shared_server.pulsar)
    for _ in range(2):
        writing.options(txnAppId=f"app {topic}", txnVersion=0).save()
    found = sorted(int(row["value"]) for row in rows_read(shared_server.pulsar, topic))
    assert found == [*range(90)]


def test_entries_name_their_transaction(query: EpochQuery) -> None:
    """By that a broker of Pulsar leaves out what was aborted."""
    tasks = query.tasks(0)
    assert query.commit(0, tasks) is True
    assert query.shows(expected(0))
    with PulsarClient(query.options.servers) as client:
        reader = client.reader(f"persistent://public/default/{query.topic}-partition-0")
        reader.seek(MessageId(-1, -1))
        metadata = read_entry(reader.receive(PATIENCE_SECONDS).entry).metadata
    assert (metadata.txnid_most_bits, metadata.txnid_least_bits) in tasks


def test_a_driver_may_die_behind_all_that_it_says(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BrokerConnection.send
    for epoch in range(MOST_REQUESTS):
        tasks = query.tasks(epoch)
        left = epoch

        def dying(connection: BrokerConnection, command: BaseCommand, *given: Any) -> None:
            nonlocal left
            real(connection, command, *given)
            if command.type in CHANGES:
                if not left:
                    raise DeathError
                left -= 1

        try:
            with monkeypatch.context() as patching:
                patching.setattr(BrokerConnection, "send", dying)
                query.commit(epoch, tasks)
        except DeathError:
            query.commit(epoch, query.tasks(epoch))
        else:
            break
    assert 6 < epoch < MOST_REQUESTS, "it died behind each request, and once not at all"
    assert query.shows(expected(*range(epoch + 1)))


def test_what_is_decided_is_committed_before_the_next_epoch(query: EpochQuery) -> None:
    """The abort of a query that failed leaves alone what was decided."""
    dies_behind_the_decision(query, PulsarEpochs)
    with query.epochs() as epochs:
        epochs.abort(query.writer)
    assert query.values() == []
    assert query.tasks(0) == []
    assert query.commit(0, []) is False
    assert query.shows(expected(0))


def test_another_batch_of_that_number_is_refused(query: EpochQuery) -> None:
    dies_behind_the_decision(query, PulsarEpochs, "1:these:there")
    refuses_others_of_that_number(query)


def test_the_first_of_two_drivers_decides(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = query.tasks(0), query.tasks(0)
    real = Journal.decide
    others: list[bool] = []

    def overtaken(journal: Journal, decision: Decision) -> None:
        if not others:  # Between its look and its note another run decides.
            others.append(True)
            others[0] = query.commit(0, new)
        real(journal, decision)

    monkeypatch.setattr(Journal, "decide", overtaken)
    assert query.commit(0, old) is False
    assert others == [True]
    assert query.shows(expected(0))
    assert query.tasks(0) == []


def test_an_answer_that_was_lost_is_found_out(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of Pulsar says of what is over only that it is."""
    tasks = query.tasks(0)
    real = Coordinators.end

    def lost(asked: Coordinators, transaction: TransactionId, *, committed: bool) -> None:
        real(asked, transaction, committed=committed)
        raise RefusedError(ServerError.TransactionNotFound, "it is not there")

    with monkeypatch.context() as patching:
        patching.setattr(Coordinators, "end", lost)
        assert query.commit(0, tasks) is True
    assert query.shows(expected(0))


def test_nothing_is_kept_of_a_write_of_which_nobody_asks_again(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.writer = query.writer.replace("test-", "write-")
    tasks = query.tasks(0)
    real = BrokerConnection.ask
    asked = []

    def listening(connection: BrokerConnection, command: BaseCommand) -> BaseCommand:
        answer = real(connection, command)
        asked.append(answer.type if command.type == BaseCommand.UNSUBSCRIBE else None)
        return answer

    monkeypatch.setattr(BrokerConnection, "ask", listening)
    assert query.commit(0, tasks) is True
    assert asked.count(BaseCommand.SUCCESS) == 2
    assert query.shows(expected(0))


def test_rows_that_are_lost_behind_the_decision_are_reported(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = query.tasks(0)
    real = Journal.decide

    def late(journal: Journal, decision: Decision) -> None:
        real(journal, decision)
        # As the broker does when the time of a transaction is over.
        end(query, tasks[0], committed=False)

    with monkeypatch.context() as patching:
        patching.setattr(Journal, "decide", late)
        with pytest.raises(SinkError) as error:
            query.commit(0, tasks)
    assert f"its transactions {tasks[0]} ended without their rows" in str(error.value)
    assert "delete the topic persistent://public/default/penstock-writer-" in str(error.value)
    assert query.shows(expected(0)[ROWS:]), "the other one is committed"
    with pytest.raises(SinkError, match="ended without their rows"):
        query.commit(0, query.tasks(0))


def test_a_task_whose_time_is_over_is_noticed_before_the_decision(query: EpochQuery) -> None:
    tasks = query.tasks(0)
    end(query, tasks[1], committed=False)
    with pytest.raises(SinkError, match=r"nothing is written: the transaction .* was ended"):
        query.commit(0, tasks)
    assert query.values() == []


def test_a_transaction_ends_after_the_time_that_is_set(query: EpochQuery) -> None:
    given = {"pulsar.transactionTimeoutMs": "1000"}
    short = EpochQuery(query.servers, query.topic, **given)
    tasks = short.tasks(0)
    with PulsarClient(query.options.servers) as client:
        wait_until(lambda: is_over(client, tasks[0], short))
    with pytest.raises(SinkError, match=r"nothing is written: .* after pulsar\.transactionTime"):
        short.commit(0, tasks)


def is_over(client: PulsarClient, transaction: TransactionId, query: EpochQuery) -> bool:
    topic = f"persistent://public/default/{query.topic}-partition-0"
    try:
        Coordinators(client).add(transaction, topic)
    except RefusedError:
        return True
    return False


def test_a_connection_that_is_closed_while_rows_are_waited_for_is_made_anew(
    query: EpochQuery,
) -> None:
    """As a broker closes it on which its pings have no answer."""
    batches = [pa.record_batch({"key": [b"k"], "value": rows}) for rows in ([b"a"], [b"b"])]
    with query.epochs() as epochs, epochs.task(Attempt(query.writer, 0, 0, 0)) as task:
        assert isinstance(epochs, PulsarEpochs)
        for batch in batches:
            task.write(batch)
            for each in epochs._client._connections.values():
                wait_until(lambda: has_answer(each))  # noqa: B023  # at once
                assert each._socket is not None
                each._socket.shutdown(socket.SHUT_RDWR)
        outcome = task.finish()
    assert outcome is not None
    assert query.commit(0, [outcome]) is True
    assert query.shows([b"a", b"b"])


def has_answer(connection: BrokerConnection) -> bool:
    """Whether the receipt of the row is there, which nobody has waited for."""
    connection.catch_up()
    return any(connection._receipts.values())


def test_an_attempt_whose_receipts_are_lost_is_given_up(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BrokerConnection.receipt
    broken = 0

    def breaking(connection: BrokerConnection, *entry: int) -> None:
        nonlocal broken
        broken += 1
        if broken == 2:  # The first is that of the note that it begins.
            connection.close()
            raise ConnectionResetError
        real(connection, *entry)

    with monkeypatch.context() as patching:
        patching.setattr(BrokerConnection, "receipt", breaking)
        with pytest.raises(SinkError, match="this attempt is given up"):
            query.task(0, 0)
    assert query.commit(0, query.tasks(0)) is True
    assert query.shows(expected(0))


@pytest.mark.soak
def test_a_broker_that_wants_a_token_is_shown_it(tmp_path: Path) -> None:
    with ApachePulsar(tmp_path, transactions=True, tokens=True) as broker:
        broker.create("orders", PARTITIONS)
        servers = f"pulsar://{broker.address}"
        for wrong in ({}, {"token": "wrong"}):
            with pytest.raises(SinkError, match="Correct the option token"):
                ask_broker(EpochQuery(servers, "orders", **wrong).options)
        query = EpochQuery(servers, "orders", token=str(broker.token))
        ask_broker(query.options)
        assert query.commit(0, query.tasks(0)) is True
        assert rows_read(servers, "orders", token=str(broker.token))


def test_a_broker_without_transactions_is_refused_before_any_row(
    query: EpochQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PulsarClient.partitions

    def hiding(client: PulsarClient, topic: str) -> int:
        return 0 if "coordinator" in topic else real(client, topic)

    monkeypatch.setattr(PulsarClient, "partitions", hiding)
    with pytest.raises(SinkError, match=r"transactionCoordinatorEnabled be true, or set atLeast"):
        ask_broker(query.options)


def notes(*said: dict[str, Any]) -> list[Note]:
    return [Note(MessageId(0, at), json.dumps(each).encode()) for at, each in enumerate(said)]


def test_the_order_of_notes_decides() -> None:
    first, second = TransactionId(0, 1), TransactionId(0, 2)
    decided = [{"epoch": 4, "decided": [first]}, {"epoch": 4, "decided": [second]}]
    assert known_of(notes(*decided), "t") == Known(Decision(4, [first]), [], MessageId(0, 1))
    done = [*decided, {"epoch": 4, "decided": []}, *decided, {"epoch": 3, "decided": [second]}]
    assert known_of(notes(*done), "t").decision == Decision(4, [])
    begun = notes({"epoch": 4, "begun": first}, {"epoch": 5, "begun": second}, *decided)
    assert known_of(begun, "t").abandoned() == [second]
    assert known_of(begun, "t").abandoned(4) == []
    assert known_of([], "t") == Known(Decision(-1, ()), [], MessageId(-1, -1))
    for text in (b"", b"{}", b'{"epoch": 1}', b'{"epoch": 1, "begun": 2}'):
        with pytest.raises(SinkError, match="t holds a message that this sink did not write"):
            known_of([Note(MessageId(0, 0), text)], "t")
