"""Goal: pipelines get batches as they are stored, of any encoding, and hear where damage lies.

Method: a Kafka session without a socket, over a real broker.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from kafka_dialog import TOPIC, Dialog
from partition_logs import log_of
from penstock import limits
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode
from penstock.log.header import Magic, build_header, walk
from stored_batches import Record as PlainRecord
from stored_batches import entry, kafka_batch, metadata
from transactional import as_part_of, end

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition

COMMITTED = 1


@pytest.fixture
async def partition(broker: Broker, dialog: Dialog) -> Partition:
    broker.topics.verification.verify = lambda *_: None
    await dialog.create_topic()
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0)


async def fetch(dialog: Dialog, offset: int, **fields: object) -> Any:
    asked = {"topic": TOPIC, "partition_index": 0, "max_bytes": 1 << 20, "isolation_level": 0}
    return await dialog.ask("FetchStored", 1, **{**asked, "fetch_offset": offset, **fields})


def offsets(result: Any) -> list[int]:
    return [header.base_offset for _, header in walk(memoryview(result.records))]


async def test_batches_come_as_they_are_stored(dialog: Dialog, partition: Partition) -> None:
    await dialog.produce(encode_batch([Record(b"kafka")]))
    body = bytes(entry(metadata(), b"pulsar"))
    header = build_header(Magic.PULSAR, body, record_count=1, base_timestamp=1, max_timestamp=1)
    partition.append([header, body])
    await partition.flushed()
    result = await fetch(dialog, 0)
    stored = list(walk(memoryview(result.records)))
    assert [each.magic for _, each in stored] == [Magic.KAFKA, Magic.PULSAR]
    assert body in bytes(result.records)
    assert (result.log_start_offset, result.high_watermark) == (0, 2)
    assert offsets(await fetch(dialog, 0, max_bytes=1)) == [0]
    assert offsets(await fetch(dialog, 1, max_bytes=-1)) == [1]
    assert offsets(await fetch(dialog, 2)) == []


async def test_another_topic_of_that_name_is_not_read(dialog: Dialog, partition: Partition) -> None:
    await dialog.produce(encode_batch([Record(b"kafka")]))
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    assert offsets(await fetch(dialog, 0, topic_id=topic.id)) == [0]
    result = await fetch(dialog, 0, topic_id=uuid.uuid4())
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert not result.records
    asked = {"topic": TOPIC, "partition_index": 0, "fetch_offset": 0, "max_bytes": 1 << 20}
    assert offsets(await dialog.ask("FetchStored", 0, isolation_level=0, **asked)) == [0]


async def test_committed_readers_end_where_a_fetch_does(
    dialog: Dialog, partition: Partition
) -> None:
    for producer in (1, None, 2):
        batch = bytearray(kafka_batch([PlainRecord(b"value")]))
        partition.append([batch if producer is None else as_part_of(batch, producer)])
        if producer == 1:
            end(partition, 1, committed=False)
    await partition.flushed()
    result = await fetch(dialog, 0, isolation_level=COMMITTED)
    assert offsets(result) == [0, 1, 2]
    assert result.last_stable_offset == 3
    (aborted,) = result.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (1, 0)
    everything = await fetch(dialog, 0)
    assert (offsets(everything), everything.aborted_transactions) == ([0, 1, 2, 3], [])


async def test_damage_is_named_with_its_place(dialog: Dialog, partition: Partition) -> None:
    for value in (b"first", b"damaged", b"third"):
        await dialog.produce(encode_batch([Record(value)]))
    (segment,) = log_of(partition).directory.glob("*.log")
    stored = segment.read_bytes()
    segment.write_bytes(stored.replace(b"damaged", b"Damaged"))
    assert offsets(await fetch(dialog, 0)) == [0]
    result = await fetch(dialog, 1)
    assert (result.error_code, result.records) == (ErrorCode.CORRUPT_MESSAGE, b"")
    damage = result.damage
    assert (damage.base_offset, damage.next_offset, damage.segment_base_offset) == (1, 2, 0)
    assert stored[damage.segment_position :].startswith((1).to_bytes(8, "big"))
    assert offsets(await fetch(dialog, damage.next_offset)) == [2]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nosuch"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"fetch_offset": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": -1}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
@pytest.mark.usefixtures("partition")
async def test_what_can_not_be_is_an_error(
    dialog: Dialog, fields: dict[str, object], code: ErrorCode
) -> None:
    result = await fetch(dialog, 0, **fields)
    assert (result.error_code, result.damage, result.records) == (code, None, b"")


async def test_one_answer_is_of_bounded_size(dialog: Dialog, partition: Partition) -> None:
    for _ in range(4):
        await dialog.produce(encode_batch([Record(bytes(900_000))]))
    result = await fetch(dialog, 0, max_bytes=(1 << 31) - 1)
    assert offsets(result) == [0, 1]
    assert len(bytes(result.records)) <= limits.KAFKA_PROMPT_FETCH_BYTES
