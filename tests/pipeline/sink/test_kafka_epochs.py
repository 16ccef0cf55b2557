"""Goal: any Kafka takes each row once, whoever dies between which two steps.

Method: a broker that does not say what Penstock has beside Kafka, and no Spark. A driver dies by an
error that nothing catches, in place of each of its requests; then the epoch is done again by new
objects. `soak` has the same with two brokers of Apache Kafka.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from apache_kafka import ApacheKafka
from broker_process import BrokerProcess
from epoch_query import (
    PARTITIONS,
    ROWS,
    DeathError,
    EpochQuery,
    dies_behind_the_decision,
    expected,
    refuses_others_of_that_number,
    within_patience,
)
from penstock.clients.kafka.connection import ClientConnection, KafkaError
from penstock.clients.kafka.coordinator import KeptOffset, ProducerState, Transactions
from penstock.kafka.wire import AnyApi, ErrorCode
from penstock.pipeline.sink.epochs.attempt import errors_in_words
from penstock.pipeline.sink.epochs.decision import Decision, last_noted, noted
from penstock.pipeline.sink.epochs.kafka import KafkaEpochs
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.fingerprints import Fingerprint
from penstock.pipeline.sink.starting import ask_broker
from penstock.pipeline.source.patience import Patience
from spark_topics import committed, create

FIRST_PRIVATE = 30_000
MOST_REQUESTS = 100
QUESTIONS = ("FindCoordinator", "Metadata")
"""After which all is as it was before."""


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("apache"), brokers=2) as cluster:
        yield cluster


@pytest.fixture(params=["penstock", pytest.param("apache", marks=pytest.mark.soak)])
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a Kafka, of which one is Penstock that does not say so."""
    if request.param == "apache":
        cluster: ApacheKafka = request.getfixturevalue("apache")
        return cluster.kafka
    server: BrokerProcess = request.getfixturevalue("shared_server")
    real = ClientConnection.versions

    def hiding(connection: ClientConnection) -> Mapping[int, tuple[int, int]]:
        found = real(connection).items()
        return {key: versions for key, versions in found if key < FIRST_PRIVATE}

    monkeypatch.setattr(ClientConnection, "versions", hiding)
    return server.kafka


@contextmanager
def transactions(address: str) -> Iterator[Transactions]:
    connection = ClientConnection(address, "test", 30)
    try:
        with Transactions(connection) as asked:
            yield asked
    finally:
        connection.close()


class Writing(EpochQuery):
    """A query that writes to a topic of its own."""

    def __init__(self, address: str, **given: str) -> None:
        self.address = address
        super().__init__(f"kafka://{address}", create(address, PARTITIONS), **given)

    def values(self) -> list[bytes]:
        parts = [committed(self.address, self.topic, each) for each in range(PARTITIONS)]
        return sorted(record.value or b"" for part in parts for record in part)

    def has_none_open(self) -> bool:
        return within_patience(lambda: not self.open())

    def open(self) -> list[str]:
        with transactions(self.address) as asked:
            return asked.all_ongoing(f"penstock-writer/{self.writer}/")


def test_an_epoch_is_visible_when_it_is_decided_and_once(address: str) -> None:
    query = Writing(address)
    ask_broker(query.options)
    query.task(0, 0)  # is lost, and done again by another executor
    states = [query.task(0, 0, 1), query.task(0, 1)]
    query.task(0, 1, 2)  # did the same at the same time, and nobody asks for it
    tasks = [each for each in states if each is not None]
    assert query.values() == []
    assert query.commit(0, tasks) is True
    assert query.shows(expected(0))
    assert query.has_none_open(), "what attempts have left holds up no reader"
    assert query.tasks(0) == [], "the epoch is written, so the tasks have nothing to do"
    assert query.commit(0, []) is False
    assert query.commit(1, query.tasks(1)) is True
    assert query.shows(expected(0, 1))
    with pytest.raises(SinkError, match=r"batch 0 of .* batch 1 was: the checkpoint"):
        query.tasks(0)
    assert query.commit(2, []) is True


def test_what_is_committed_stays_so_whatever_fails_later(address: str) -> None:
    query = Writing(address)
    assert query.commit(0, query.tasks(0)) is True
    query.tasks(1)  # under the same ids, and never decided
    with query.epochs() as epochs:
        epochs.abort(query.writer)
    assert query.tasks(0) == []
    assert query.commit(0, []) is False
    assert query.shows(expected(0))


def test_a_driver_may_die_between_any_two_requests(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Writing(address)
    real = ClientConnection.send
    for epoch in range(MOST_REQUESTS):
        tasks = query.tasks(epoch)
        left = epoch

        def dying(connection: ClientConnection, asked: AnyApi, *given: Any) -> Any:
            nonlocal left
            if not left:
                raise DeathError
            left -= asked.name not in QUESTIONS
            return real(connection, asked, *given)

        try:
            with monkeypatch.context() as patching:
                patching.setattr(ClientConnection, "send", dying)
                query.commit(epoch, tasks)
        except DeathError:
            query.commit(epoch, query.tasks(epoch))
        else:
            break
    assert 8 < epoch < MOST_REQUESTS, "it died at each request, and once not at all"
    assert query.shows(expected(*range(epoch + 1)))
    assert query.has_none_open()


def test_what_is_decided_is_committed_before_the_next_epoch(address: str) -> None:
    """The abort of a query that failed leaves alone what was decided."""
    query = Writing(address)
    dies_behind_the_decision(query, KafkaEpochs)
    with query.epochs() as epochs:
        epochs.abort(query.writer)
    assert query.values() == []
    assert query.tasks(0) == []
    assert query.commit(0, []) is False
    assert query.shows(expected(0))


def test_another_batch_of_that_number_is_refused(address: str) -> None:
    query = Writing(address)
    dies_behind_the_decision(query, KafkaEpochs, "1:these:there")
    refuses_others_of_that_number(query)


def test_a_driver_that_was_taken_for_dead_decides_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Writing(address)
    old = query.tasks(0)
    real = KafkaEpochs._topics
    new: list[ProducerState] = []

    def pausing(epochs: KafkaEpochs, producer: ProducerState) -> list[str]:
        found = real(epochs, producer)
        if not new:  # Behind its look at the transactions another run begins.
            new.extend(query.tasks(0))
        return found

    monkeypatch.setattr(KafkaEpochs, "_topics", pausing)
    with pytest.raises(SinkError, match="nothing is written: the transaction"):
        query.commit(0, old)
    assert query.values() == []
    assert query.commit(0, new) is True
    assert query.shows(expected(0))


def test_a_task_that_was_given_up_is_in_nobodys_way(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Writing(address)
    tasks = query.tasks(0)
    real = KafkaEpochs._note
    late: list[ProducerState | None] = []

    def meanwhile(*given: Any) -> None:
        if not late:
            late.append(query.task(0, 1, 7))
        real(*given)

    monkeypatch.setattr(KafkaEpochs, "_note", meanwhile)
    assert query.commit(0, tasks) is True
    assert query.shows(expected(0))
    assert query.has_none_open()


def test_rows_that_are_lost_behind_the_decision_are_reported(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Writing(address)
    tasks = query.tasks(0)
    real = KafkaEpochs._finish

    def late(epochs: KafkaEpochs, writer: str, decision: Decision) -> None:
        # As the broker does when the time of a transaction is over.
        with transactions(address) as asked:
            name = decision.producers[0].transactional_id
            Patience(answered=True).ask(lambda: asked.begin(name, 60_000))
        real(epochs, writer, decision)

    with monkeypatch.context() as patching:
        patching.setattr(KafkaEpochs, "_finish", late)
        with pytest.raises(SinkError) as error:
            query.commit(0, tasks)
    words = f"its transactions {tasks[0].transactional_id} ended without their rows"
    assert words in str(error.value)
    assert f"delete the group penstock-writer/{query.writer}" in str(error.value)
    assert query.shows(expected(0)[ROWS:]), "the other one is committed"
    with pytest.raises(SinkError, match="ended without their rows"):
        query.commit(0, query.tasks(0))


def test_a_task_whose_time_is_over_is_noticed_before_the_decision(address: str) -> None:
    query = Writing(address)
    tasks = query.tasks(0)
    query.task(0, 1)
    with pytest.raises(SinkError, match=r"nothing is written: the transaction .*/1\.0 was ended"):
        query.commit(0, tasks)
    assert query.values() == []


def test_a_broker_that_refuses_says_so_before_any_row(address: str) -> None:
    query = Writing(address, **{"kafka.transaction.timeout.ms": "2000000000"})
    with pytest.raises(SinkError, match=r"transaction\.max\.timeout\.ms"):
        ask_broker(query.options)


def test_a_decision_is_read_as_it_was_noted() -> None:
    prefix = "penstock-writer/q/"
    producers = [ProducerState(f"{prefix}{n}.0", 1000 + n, n % 3) for n in range(600)]
    decision = Decision(7, producers, "t", str(Fingerprint(uuid.uuid4().hex, "0" * 16)))
    kept = noted(decision, prefix)
    assert len(kept.metadata) <= 4096
    older = noted(Decision(6, producers[:1], "another"), prefix)
    assert last_noted([kept, older], prefix) == decision
    assert last_noted([], prefix) is None
    for metadata in ("", "penstock-1:", "penstock-2:", "penstock-2:AAAA", "penstock-3:", "x"):
        with pytest.raises(SinkError, match="the group penstock-writer/q keeps an offset of t"):
            last_noted([KeptOffset("t", 0, 1, metadata)], prefix)


def test_a_decision_of_an_earlier_version_says_what_it_says() -> None:
    metadata = "penstock-1:eNqLjlYy0DNQ0jE0MDDQMYiNBQAduAOM"
    prefix = "penstock-writer/q/"
    found = last_noted([KeptOffset("t", 0, 7, metadata)], prefix)
    assert found == Decision(7, [ProducerState(f"{prefix}0.0", 1000, 0)], "t")


def test_errors_of_rights_name_the_rights() -> None:
    for code in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        with pytest.raises(SinkError, match="needs the rights Write"), errors_in_words("b"):
            raise KafkaError(code, "it")
