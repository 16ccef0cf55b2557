"""Goal: Kafka's transactional requests do and refuse what Kafka's do, in all versions.

Method: requests into a session without a socket; the log and the offsets are looked at directly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_dialog import TOPIC, Dialog, kafka_broker
from kafka_transactions import (
    GROUP,
    ID,
    TransactionalProducer,
    batch,
    fetched_offset,
)
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.isolation import Isolation
from penstock.kafka.wire import ErrorCode, api
from penstock.log.errors import LogFailedError


def partition_of(dialog: Dialog, index: int = 0) -> Partition:
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(index)


def stable_end(dialog: Dialog, index: int = 0) -> int:
    return partition_of(dialog, index).readable_end(Isolation.READ_COMMITTED)


@pytest.fixture(params=[False, True], ids=["part 1", "part 2"])
async def producer(dialog: Dialog, request: pytest.FixtureRequest) -> TransactionalProducer:
    """A producer that has initialised itself, of each kind of KIP-890."""
    await dialog.create_topic(partitions=3)
    made = TransactionalProducer(dialog, part_2=request.param)
    assert await made.init() == 0
    return made


async def begin(producer: TransactionalProducer, *partitions: int) -> None:
    if not producer.part_2:
        assert set(await producer.add(*partitions)) == {0}
    for each in partitions:
        assert await producer.produce(partition=each) == 0


@pytest.mark.parametrize("committed", [True, False])
async def test_messages_are_stable_when_their_transaction_has_ended(
    producer: TransactionalProducer, committed: bool
) -> None:
    dialog = producer.dialog
    for transaction in range(2):
        await begin(producer, 0, 1)
        assert [stable_end(dialog, each) for each in (0, 1)] == [2 * transaction] * 2
        assert await producer.end(committed=committed) == 0
        # A message and a marker.
        assert [stable_end(dialog, each) for each in (0, 1)] == [2 * transaction + 2] * 2
    assert stable_end(dialog, 2) == 0
    assert producer.epoch == (2 if producer.part_2 else 0)


@pytest.mark.parametrize("version", range(6))
async def test_every_version_initialises(dialog: Dialog, version: int) -> None:
    producer = TransactionalProducer(dialog)
    for epoch in range(3):
        assert await producer.init(version) == 0
        assert producer.epoch == epoch
    for timeout in (0, -1, 900_001):
        code = await producer.init(version, transaction_timeout_ms=timeout)
        assert code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    if version >= 3:
        stale = {"producer_id": producer.id, "producer_epoch": 0}
        fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.init(version, **stale) == fenced
        assert await producer.init(version, producer_id=3) == ErrorCode.INVALID_REQUEST
        going_on = {"producer_id": producer.id, "producer_epoch": producer.epoch}
        for _ in range(2):  # Whoever did not hear the answer asks again.
            assert await producer.init(version, **going_on) == 0
            assert producer.epoch == going_on["producer_epoch"] + 1


@pytest.mark.parametrize("version", range(4))
async def test_every_version_of_the_older_kind_commits(dialog: Dialog, version: int) -> None:
    await dialog.create_topic(partitions=2)
    producer = TransactionalProducer(dialog, part_2=False)
    await producer.init()
    assert await producer.add(0, 1, version=version) == [0, 0]
    assert await producer.produce(version=min(3 + version, 10)) == 0
    assert await producer.add_offsets(version=version) == 0
    assert await producer.commit_offset(7, version=version) == 0
    assert await producer.end(version=version) == 0
    assert await fetched_offset(dialog, stable=True) == 7
    stranger = TransactionalProducer(dialog, part_2=False)
    await stranger.init()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.add(0, 1, version=version) == [fenced] * 2
    assert await producer.add_offsets(version=version) == fenced
    assert await producer.end(version=version) == fenced
    assert await producer.commit_offset(7, version=version) == ErrorCode.INVALID_PRODUCER_EPOCH, (
        "the one that producers know"
    )


async def test_partitions_are_added_all_or_none(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=2)
    producer = TransactionalProducer(dialog, part_2=False)
    await producer.init()
    unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert await producer.add(0, 9, 1) == [skipped, unknown, skipped]
    assert await producer.produce() == ErrorCode.INVALID_TXN_STATE
    assert await producer.produce(version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert await producer.add(1, 1, 1) == [0, 0, 0], "twice is once"
    assert await producer.add(1) == [0]
    assert await producer.produce() == ErrorCode.INVALID_TXN_STATE
    assert await producer.produce(partition=1) == 0
    assert await producer.add(0, topic="missing") == [unknown]


async def many(
    dialog: Dialog, version: int, *asked: tuple[TransactionalProducer, bool, int]
) -> list[int]:
    request = api("AddPartitionsToTxn").request
    transactions = [
        request.AddPartitionsToTxnTransaction(
            **producer.identity,
            verify_only=verify_only,
            topics=[request.AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])],
        )
        for producer, verify_only, partition in asked
    ]
    answer = await dialog.ask("AddPartitionsToTxn", version, transactions=transactions)
    assert answer.error_code == 0
    return [
        each.topic_results[0].results_by_partition[0].partition_error_code
        for each in answer.results_by_transaction
    ]


@pytest.mark.parametrize("version", [4, 5])
async def test_several_producers_are_asked_about_at_once(dialog: Dialog, version: int) -> None:
    await dialog.create_topic(partitions=2)
    one, two = (TransactionalProducer(dialog, name, part_2=False) for name in "ab")
    await one.init()
    await two.init()
    absent = ErrorCode.TRANSACTION_ABORTABLE if version == 5 else ErrorCode.INVALID_TXN_STATE
    found = await many(dialog, version, (one, True, 0), (one, False, 0), (two, True, 0))
    assert found == [absent, 0, absent]
    assert await many(dialog, version, (one, True, 0), (one, True, 1)) == [0, absent]
    two.epoch += 1
    assert await many(dialog, version, (two, True, 0)) == [ErrorCode.PRODUCER_FENCED]


async def test_what_nobody_began_can_not_be_committed(producer: TransactionalProducer) -> None:
    assert await producer.end() == ErrorCode.INVALID_TXN_STATE
    code = 0 if producer.part_2 else ErrorCode.INVALID_TXN_STATE
    assert await producer.end(committed=False) == code
    await begin(producer, 0)
    assert await producer.end() == 0
    if producer.part_2:
        producer.epoch -= 1
    assert await producer.end() == 0, "its answer was lost"
    if producer.part_2:
        producer.epoch -= 1
    assert await producer.end(committed=False) == ErrorCode.INVALID_TXN_STATE


async def test_a_fenced_producer_writes_nothing(producer: TransactionalProducer) -> None:
    await begin(producer, 0)
    successor = TransactionalProducer(producer.dialog, part_2=producer.part_2)
    assert await successor.init() == 0
    assert successor.id == producer.id
    assert stable_end(producer.dialog) == 2, "what it had open is aborted"
    assert await producer.produce(partition=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.produce(partition=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end() == ErrorCode.PRODUCER_FENCED
    await begin(successor, 0, 1)
    assert await producer.produce(partition=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await successor.end() == 0


async def test_epochs_and_ids_that_were_never_given_are_refused(
    producer: TransactionalProducer,
) -> None:
    await begin(producer, 0)
    true = producer.id, producer.epoch
    for producer_id, epoch, code in (
        (true[0], true[1] + 1, ErrorCode.PRODUCER_FENCED),
        (true[0], 32_767, ErrorCode.PRODUCER_FENCED),
        (true[0], -1, ErrorCode.PRODUCER_FENCED),
        (true[0] + 1, true[1], ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (-1, true[1], ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ):
        producer.id, producer.epoch = producer_id, epoch
        assert await producer.add(0) == [code]
        assert await producer.add_offsets() == code
        assert await producer.end() == code
        for_writers = (
            ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
        )
        assert await producer.commit_offset(1) == for_writers
        if epoch >= 0 and producer_id >= 0:  # Else it is no batch of a transaction.
            assert await producer.produce() == for_writers
    producer.name = "x" * 32_000
    assert await producer.add(0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert await producer.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.commit_offset(1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.produce() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.init() == 0, "a name of 32 KB is a name"
    await begin(producer, 1)
    assert await producer.end() == 0


async def test_an_empty_name_is_refused(dialog: Dialog) -> None:
    producer = TransactionalProducer(dialog, "")
    await dialog.create_topic()
    refused = ErrorCode.INVALID_REQUEST
    assert await producer.init() == refused
    assert await producer.add(0) == [refused]
    assert await producer.add_offsets() == refused
    assert await producer.commit_offset(1) == refused
    assert await producer.end() == refused


async def test_a_batch_says_whose_it_is(producer: TransactionalProducer) -> None:
    await begin(producer, 0)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await producer.produce(transactional_id=None) == refused
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.produce(partition=1, transactional_id="other") == unknown
    nobody = batch(-1, -1, -1)
    assert await producer.produce(batch=nobody) != 0
    assert await producer.produce() == 0


async def test_a_producer_begins_on_a_partition_at_sequence_0(
    producer: TransactionalProducer,
) -> None:
    await begin(producer, 0)
    if not producer.part_2:
        assert await producer.add(1) == [0]
    late = batch(producer.id, producer.epoch, 3)
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if producer.part_2 else 0
    assert await producer.produce(partition=1, batch=late) == code
    assert partition_of(producer.dialog, 1).end_offset == (0 if producer.part_2 else 1)
    assert await producer.end() == 0


async def test_producers_that_a_partition_has_forgotten_go_on(
    producer: TransactionalProducer,
) -> None:
    await begin(producer, 0)
    partition_of(producer.dialog).producers.close()
    assert await producer.produce() == 0
    idempotent = batch(99, 0, sequence=7, attributes=0)
    assert await producer.produce(batch=idempotent, transactional_id=None) == 0


async def test_offsets_are_pending_until_the_end(producer: TransactionalProducer) -> None:
    dialog = producer.dialog
    for offset, committed in ((7, True), (9, False)):
        if not producer.part_2:
            assert await producer.commit_offset(offset) == ErrorCode.INVALID_TXN_STATE
            code = await producer.commit_offset(offset, version=4)
            assert code == ErrorCode.TRANSACTION_ABORTABLE
            assert await producer.add_offsets() == 0
        before = await fetched_offset(dialog)
        assert await producer.commit_offset(offset) == 0
        assert await fetched_offset(dialog) == before
        unstable = f"error {ErrorCode.UNSTABLE_OFFSET_COMMIT.value}"
        assert await fetched_offset(dialog, stable=True) == unstable
        assert await fetched_offset(dialog, stable=True, partition=1) == -1
        assert await producer.end(committed=committed) == 0
        assert await fetched_offset(dialog, stable=True) == 7


async def test_everything_of_a_group_tells_what_is_not_stable(
    producer: TransactionalProducer,
) -> None:
    if not producer.part_2:
        await producer.add_offsets()
    await producer.commit_offset(7)
    answer = await producer.dialog.ask(
        "OffsetFetch", 7, group_id=GROUP, topics=None, require_stable=True
    )
    (topic,) = answer.topics
    (part,) = topic.partitions
    assert (topic.name, part.error_code) == (TOPIC, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    answer = await producer.dialog.ask(
        "OffsetFetch", 7, group_id=GROUP, topics=None, require_stable=False
    )
    assert answer.topics == []


async def test_what_a_group_committed_since_is_not_taken_back_by_a_transaction(
    dialog: Dialog,
) -> None:
    await dialog.create_topic()
    producer = TransactionalProducer(dialog)
    await producer.init()
    await producer.commit_offset(5)
    request = api("OffsetCommit").request
    part = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    topic = request.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    await dialog.ask(
        "OffsetCommit", 9, group_id=GROUP, generation_id_or_member_epoch=-1, topics=[topic]
    )
    assert await producer.end(committed=True) == 0
    assert await fetched_offset(dialog, stable=True) == 9


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "missing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"member_id": "m", "generation_id_or_member_epoch": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
async def test_an_offset_that_is_refused_begins_nothing(
    dialog: Dialog, fields: dict[str, Any], code: ErrorCode
) -> None:
    await dialog.create_topic()
    producer = TransactionalProducer(dialog)
    await producer.init()
    assert await producer.commit_offset(7, **fields) == code
    assert await producer.end() == ErrorCode.INVALID_TXN_STATE


async def test_what_is_not_safe_is_not_committed(
    producer: TransactionalProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(producer, 0)

    async def unsafe(*_: object) -> None:
        raise LogFailedError("a flush failed")

    monkeypatch.setattr("penstock.broker.transactions.markers.Markers.safe", unsafe)
    aborted = ErrorCode.TRANSACTION_ABORTABLE
    assert await producer.end(version=4) == aborted
    assert await producer.end(version=3) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await producer.end(committed=False) == 0


async def test_only_the_broker_writes_markers(dialog: Dialog) -> None:
    await dialog.create_topic()
    request = api("WriteTxnMarkers").request
    topic = request.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0, 9])
    marker = request.WritableTxnMarker(producer_id=1, transaction_result=True, topics=[topic])
    for version in range(3):
        answer = await dialog.ask("WriteTxnMarkers", version, markers=[marker])
        found = answer.markers[0].topics[0].partitions
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert [each.error_code for each in found] == [refused] * 2
    assert stable_end(dialog) == 0


async def test_transactions_are_described(producer: TransactionalProducer) -> None:
    dialog = producer.dialog
    await begin(producer, 2, 0)
    answer = await dialog.ask(
        "DescribeTransactions", 0, transactional_ids=[ID, "nobody", "twice", "twice"]
    )
    known, *others = answer.transaction_states
    assert (known.transaction_state, known.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert (known.producer_id, known.producer_epoch) == (producer.id, producer.epoch)
    assert [(each.topic, each.partitions) for each in known.topics] == [(TOPIC, [0, 2])]
    assert known.transaction_start_time_ms > 1_600_000_000_000
    assert {each.error_code for each in others} == {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
    answer = await dialog.ask("DescribeTransactions", 0, transactional_ids=[ID, ID])
    assert {each.error_code for each in answer.transaction_states} == {ErrorCode.INVALID_REQUEST}
    answer = await dialog.ask("DescribeTransactions", 0, transactional_ids=[""])
    assert [each.error_code for each in answer.transaction_states] == [ErrorCode.INVALID_REQUEST]
    await producer.end(committed=False)
    answer = await dialog.ask("DescribeTransactions", 0, transactional_ids=[ID])
    (known,) = answer.transaction_states
    assert (known.transaction_state, known.topics) == ("CompleteAbort", [])
    assert known.transaction_start_time_ms == -1


async def test_producers_are_described_with_what_they_have_open(
    producer: TransactionalProducer,
) -> None:
    dialog = producer.dialog
    request = api("DescribeProducers").request
    asked = request.TopicRequest(name=TOPIC, partition_indexes=[0])

    async def described() -> list[tuple[int, ...]]:
        answer = await dialog.ask("DescribeProducers", topics=[asked])
        return [
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in answer.topics[0].partitions[0].active_producers
        ]

    await begin(producer, 0)
    of_pulsar = await dialog.broker.transactions.begin(60_000)
    partition = partition_of(dialog)
    await dialog.broker.transactions.add_partitions("", of_pulsar, [partition.id])
    partition.append([batch(*of_pulsar, sequence=-1)])
    assert await described() == [(producer.id, 0, 0, -1, 0), (*of_pulsar, -1, -1, 1)]
    assert await producer.end() == 0
    await dialog.broker.transactions.end("", of_pulsar, committed=True)
    (known,) = await described()
    sequence = -1 if producer.part_2 else 0
    assert known == (producer.id, producer.epoch, sequence, partition.leader_epoch, -1)


FILTERS = {"duration_filter": 1, "transactional_id_pattern": 2}
"""The first versions that have them."""


async def test_transactions_are_listed_by_what_they_are(dialog: Dialog) -> None:
    await dialog.create_topic()
    idle, busy = (TransactionalProducer(dialog, name) for name in ("idle", "busy"))
    await idle.init()
    await busy.init()
    await busy.produce()

    async def listed(**filters: Any) -> list[str]:
        version = max(FILTERS.get(name, 0) for name in [*filters, ""])
        answer = await dialog.ask("ListTransactions", version, **filters)
        assert answer.error_code == 0
        return [each.transactional_id for each in answer.transaction_states]

    assert await listed() == ["idle", "busy"]
    assert await listed(state_filters=["Ongoing"]) == ["busy"]
    assert await listed(producer_id_filters=[idle.id, 10**9]) == ["idle"]
    assert await listed(duration_filter=0, state_filters=["Empty"]) == []
    assert await listed(duration_filter=3_600_000) == []
    assert await listed(transactional_id_pattern="") == ["idle", "busy"]
    assert await listed(transactional_id_pattern="(id|b).*") == ["idle", "busy"]
    assert await listed(transactional_id_pattern="[a-z]{3}y") == ["busy"]
    assert await listed(transactional_id_pattern="bus") == [], "the whole id matches"
    assert await listed(transactional_id_pattern=".*", state_filters=["Empty"]) == ["idle"]
    answer = await dialog.ask("ListTransactions", 1, state_filters=["Ongoing", "Odd"])
    assert answer.unknown_state_filters == ["Odd"]


@pytest.mark.parametrize(
    "pattern",
    ["(a", "*", r"(a)\1", "(?=a)", "[b-a]", "a{1001}", "(x{1000}){1000}", "a(?i", "\0(" * 10_000],
)
async def test_what_is_no_pattern_is_refused(dialog: Dialog, pattern: str) -> None:
    await dialog.create_topic()
    await TransactionalProducer(dialog, "a").init()
    answer = await dialog.ask("ListTransactions", 2, transactional_id_pattern=pattern)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []


async def test_a_pattern_that_is_hostile_takes_time_that_is_linear(dialog: Dialog) -> None:
    await dialog.create_topic()
    await TransactionalProducer(dialog, "a" * 30_000).init()
    for pattern in ("(a*)*b", "(a|a)*b", "a*" * 60 + "b"):
        answer = await dialog.ask("ListTransactions", 2, transactional_id_pattern=pattern)
        assert (answer.error_code, answer.transaction_states) == (0, [])


async def test_a_transaction_outlives_the_broker(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        producer = TransactionalProducer(Dialog(broker))
        await producer.dialog.create_topic(partitions=3)
        await producer.init()
        await producer.produce()
        await producer.commit_offset(5)
    async with kafka_broker(tmp_path) as broker:
        producer.dialog = Dialog(broker)
        assert await fetched_offset(producer.dialog) == -1
        assert await producer.produce() == 0
        assert await producer.produce(partition=1) == 0
        assert await producer.end() == 0
        assert await fetched_offset(producer.dialog, stable=True) == 5
        assert [stable_end(producer.dialog, each) for each in (0, 1)] == [3, 2]


async def test_two_producers_of_one_partition_are_apart(dialog: Dialog) -> None:
    await dialog.create_topic()
    one, two = (TransactionalProducer(dialog, name) for name in ("one", "two"))
    for each in (one, two):
        await each.init()
        assert await each.produce() == 0
    assert stable_end(dialog) == 0
    assert await two.end() == 0
    assert stable_end(dialog) == 0
    assert await one.end(committed=False) == 0
    assert stable_end(dialog) == 4
