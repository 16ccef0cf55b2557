"""Goal: a log is written anew at the offsets that it had, gaps among them, and nothing twice.

Method: a Kafka session without a socket, over a real broker.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_dialog import TOPIC, Dialog
from penstock import records
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    Magic,
    build_header,
    read_header,
    set_max_timestamp,
    stamp_append_time,
    walk,
)
from penstock.records import field
from penstock.records.kafka.encode import encode_kafka
from stored_batches import Record as PlainRecord
from stored_batches import kafka_batch, pulsar_batch
from stored_batches import read as plain

SPAN = (1 << 31) - 1


@pytest.fixture
async def partition(dialog: Dialog) -> Partition:
    await dialog.create_topic(max_message_bytes="200", penstock_importing="true")
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    await topic.partition(0).opened()
    return topic.partition(0)


async def append_at(
    dialog: Dialog, end: int, base: int, records: bytes | bytearray | None = None
) -> Any:
    fields = {"topic": TOPIC, "partition_index": 0, "end_offset": end, "base_offset": base}
    return await dialog.ask("AppendAt", 0, records=records, **fields)


def batch(*values: bytes) -> bytearray:
    return bytearray(encode_batch([Record(value) for value in values]))


async def stored(partition: Partition) -> list[tuple[int, int, int]]:
    found = await partition.read_stored(partition.start_offset, 1 << 20)
    headers = [each for part in found.parts for _, each in walk(part)]
    return [(each.base_offset, each.next_offset, each.record_count) for each in headers]


def with_attributes(made: bytes | bytearray, attributes: int, producer_id: int = -1) -> bytearray:
    old, body = read_header(made), bytes(made[61:])
    header = build_header(
        Magic.KAFKA,
        body,
        record_count=old.record_count,
        base_timestamp=old.base_timestamp,
        max_timestamp=old.max_timestamp,
        attributes=attributes,
        producer_id=producer_id,
        last_offset_delta=old.last_offset_delta,
    )
    return header + body


def with_offsets(first: int, second: int) -> bytearray:
    """A batch that spans ten offsets, and has two records."""
    columns = records.decode(
        kafka_batch([PlainRecord(b"1", b"k", time=5_000_000), PlainRecord(b"2", time=4_000_000)])
    )
    columns.batches[field.LAST_DELTA] = 9
    columns.records[field.OFFSET] = first, second
    return bytearray(encode_kafka(columns))


async def test_batches_get_the_offsets_that_are_asked_for(
    dialog: Dialog, partition: Partition
) -> None:
    assert (await append_at(dialog, 0, 0, batch(b"a", b"b"))).end_offset == 2
    assert (await append_at(dialog, 2, 10, batch(b"c"))).end_offset == 11
    assert (await append_at(dialog, 11, 11, batch(b"d" * 500))).error_code == 0  # over the limit
    assert (await append_at(dialog, 12, 20)).end_offset == 20
    assert await stored(partition) == [(0, 2, 2), (2, 10, 0), (10, 11, 1), (11, 12, 1), (12, 20, 0)]
    await dialog.produce(encode_batch([Record(b"after it")]))
    assert partition.end_offset == 21


async def test_nothing_is_written_twice_or_elsewhere(dialog: Dialog, partition: Partition) -> None:
    await append_at(dialog, 0, 5, batch(b"a"))
    for end, base in ((0, 5), (5, 6), (7, 7)):
        refused = await append_at(dialog, end, base, batch(b"a"))
        assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert refused.end_offset == 6
    for base in (5, 6 + SPAN + 1, -1):
        assert (await append_at(dialog, 6, base)).error_code == ErrorCode.INVALID_REQUEST
    assert (await append_at(dialog, 6, 6)).end_offset == 6
    assert partition.end_offset == 6


async def test_a_topic_that_nobody_imports_keeps_its_end(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(encode_batch([Record(b"value")]))
    for far in (None, batch(b"far")):
        refused = await append_at(dialog, 1, SPAN, far)
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert "penstock.importing" in refused.error_message
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    assert topic.partition(0).end_offset == 1


async def test_the_longest_gap_is_bridged(dialog: Dialog, partition: Partition) -> None:
    await append_at(dialog, 0, SPAN)
    found = await append_at(dialog, SPAN, 2 * SPAN, batch(b"far"))
    assert (found.error_code, found.end_offset) == (0, 2 * SPAN + 1)


async def test_records_may_leave_offsets_out_and_keep_their_times(
    dialog: Dialog, partition: Partition
) -> None:
    assert (await append_at(dialog, 0, 100, with_offsets(0, 7))).error_code == 0
    appended = bytearray(kafka_batch([PlainRecord(b"3", time=4_000_000)]))
    stamp_append_time([appended], 6_000)
    assert read_header(appended).attributes == ATTRIBUTE_LOG_APPEND_TIME
    assert (await append_at(dialog, 110, 110, appended)).error_code == 0
    found = records.decode((await partition.read_stored(100, 1 << 20)).parts[0])
    assert found.offsets.tolist() == [100, 107, 110]
    assert found.timestamp_types.tolist() == [0, 0, 1]
    assert [each.time for each in plain(found)] == [5_000_000, 4_000_000, 6_000_000]


async def test_what_is_no_sound_batch_is_refused(dialog: Dialog, partition: Partition) -> None:
    whole = batch(b"value")
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    late = bytearray(whole)
    set_max_timestamp(late, 1 << 40)
    refused = {
        ErrorCode.CORRUPT_MESSAGE: [flipped, whole[:70], bytearray(b"x" * 20)],
        ErrorCode.INVALID_TIMESTAMP: [late],
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: [with_attributes(whole, 5)],
        ErrorCode.INVALID_RECORD: [
            with_attributes(whole, ATTRIBUTE_TRANSACTIONAL, 7),
            with_attributes(whole, ATTRIBUTE_CONTROL),
            with_attributes(whole, 0, 7),
            with_offsets(3, 3),
            with_offsets(3, 2),
            with_offsets(3, 10),
            bytearray(pulsar_batch(b"no entry")),
            whole + whole,
        ],
    }
    for code, batches in refused.items():
        for each in batches:
            answer = await append_at(dialog, 0, 0, each)
            assert answer.error_code == code, answer.error_message
            assert answer.error_message
    assert partition.end_offset == 0


async def test_what_is_not_there_or_terminated_takes_nothing(dialog: Dialog) -> None:
    absent = await append_at(dialog, 0, 0, batch(b"a"))
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await dialog.create_topic()
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    await dialog.broker.topics.configure(topic, lambda _: {"terminated": "true"})
    refused = await append_at(dialog, 0, 0, batch(b"a"))
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
