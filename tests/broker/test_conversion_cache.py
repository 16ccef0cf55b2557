"""Batches in another encoding: what a read returns, what is kept, and what is read ahead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from partition_logs import log_of
from penstock import records
from penstock.broker.broker import Broker
from penstock.broker.reading import conversion_cache
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.limits import CONVERTED_RUNS
from penstock.log import CorruptBatchError, Log, OffsetOutOfRangeError
from penstock.log.header import Magic, build_header, walk
from penstock.memory import Reading
from penstock.records import MalformedBatchError
from penstock.records.errors import OverLimitError
from penstock.records.kafka.compression import inflate_kafka
from receivers import message_batch
from stored_batches import Record, kafka_batch

RECORDS = 10


@pytest.fixture
async def partition(tmp_path: Path) -> AsyncIterator[Partition]:
    await records.prepare()
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    yield topic.partition(0)
    await broker.close()


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The stored bytes of each conversion, in order."""
    sizes: list[int] = []
    convert = conversion_cache.convert

    async def counted(log: Log, stored: memoryview, target: Magic, held: Reading) -> Any:
        sizes.append(len(stored))
        return await convert(log, stored, target, held)

    monkeypatch.setattr(conversion_cache, "convert", counted)
    return sizes


async def fill(partition: Partition, batches: int, value_size: int = 100) -> int:
    """Append Kafka batches of ten records; returns the stored size of one."""
    batch = kafka_batch([Record(bytes(value_size))] * RECORDS)
    for _ in range(batches):
        partition.append([bytearray(batch)])
    await partition.flushed()
    return len(batch)


async def spans(
    partition: Partition, offset: int, max_bytes: int, magic: Magic = Magic.PULSAR
) -> list[tuple[int, int]]:
    """First and last offset of each batch that a read returns."""
    parts = await partition.read(offset, max_bytes, magic)
    headers = [header for part in parts for _, header in walk(part)]
    assert all(header.magic == magic for header in headers)
    return [(header.base_offset, header.last_offset) for header in headers]


@pytest.mark.parametrize("offset", [0, 7, 9, 10, 39])
async def test_a_read_begins_with_the_batch_that_holds_the_offset(
    partition: Partition, offset: int
) -> None:
    await fill(partition, 4)
    first = offset // RECORDS * RECORDS
    assert (await spans(partition, offset, 1))[0] == (first, first + RECORDS - 1)
    again = await spans(partition, offset, 1 << 20)
    assert again == [(base, base + RECORDS - 1) for base in range(first, 40, RECORDS)]


async def test_only_the_first_batch_may_be_larger_than_the_limit(partition: Partition) -> None:
    await fill(partition, 4)
    ((_, header),) = walk((await partition.read(0, 1, Magic.PULSAR))[0])
    assert await spans(partition, 0, header.size - 1) == [(0, 9)]
    assert await spans(partition, 0, 2 * header.size) == [(0, 9), (10, 19)]
    assert await spans(partition, 0, 3 * header.size - 1) == [(0, 9), (10, 19)]


async def test_a_batch_that_is_read_in_parts_is_converted_once(
    partition: Partition, conversions: list[int]
) -> None:
    await fill(partition, 2)
    for offset in range(2 * RECORDS):
        assert await spans(partition, offset, 1 << 20)
    assert len(conversions) == 1


async def test_who_reads_on_has_ever_more_converted_ahead(
    partition: Partition, conversions: list[int]
) -> None:
    size = await fill(partition, 31)
    offset = 0
    while offset < partition.end_offset:
        ((base, last),) = await spans(partition, offset, 1)
        assert base == offset
        offset = last + 1
    assert conversions == [size, 2 * size, 4 * size, 8 * size, 16 * size]


async def test_what_is_converted_ahead_has_a_limit(
    partition: Partition, conversions: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = await fill(partition, 12)
    monkeypatch.setattr(conversion_cache, "CONVERTED_AHEAD_BYTES", 2 * size)
    for offset in range(0, 12 * RECORDS, RECORDS):
        assert await spans(partition, offset, 1)
    assert conversions == [size, *[2 * size] * 5, size]


async def test_who_jumps_about_has_nothing_converted_ahead(
    partition: Partition, conversions: list[int]
) -> None:
    size = await fill(partition, 8)
    for offset in (70, 10, 50, 30):
        assert await spans(partition, offset, 1) == [(offset, offset + 9)]
    assert conversions == [size] * 4


async def test_an_answer_is_filled_with_what_was_not_converted_yet(partition: Partition) -> None:
    await fill(partition, 9)
    ((_, header),) = walk((await partition.read(0, 1, Magic.PULSAR))[0])
    for offset in (0, 30, 60):
        expected = [(base, base + 9) for base in range(offset, offset + 30, 10)]
        assert await spans(partition, offset, 4 * header.size - 1) == expected


async def test_an_answer_is_not_lost_to_damage_behind_it(partition: Partition) -> None:
    await fill(partition, 1)
    await partition.flushed()
    assert await spans(partition, 0, 1) == [(0, 9)]
    await fill(partition, 1)
    await partition.flushed()
    (segment,) = log_of(partition).directory.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    assert await spans(partition, 0, 1 << 20) == [(0, 9)]
    with pytest.raises(CorruptBatchError):
        await partition.read(10, 1 << 20, Magic.PULSAR)


async def test_readers_at_different_places_do_not_take_it_from_each_other(
    partition: Partition, conversions: list[int]
) -> None:
    size = await fill(partition, 20)
    for step in range(0, 30, 10):
        for start in (0, 100):
            ((base, _),) = await spans(partition, start + step, 1)
            assert base == start + step
    assert conversions == [size, size, 2 * size, 2 * size]


async def test_only_some_runs_of_a_log_are_kept(
    partition: Partition, conversions: list[int]
) -> None:
    await fill(partition, 12)
    places = [20 * number for number in range(CONVERTED_RUNS + 1)]
    for offset in [*places, places[-1], places[0]]:
        assert await spans(partition, offset, 1)
    assert len(conversions) == len(places) + 1


async def test_each_encoding_has_its_own(partition: Partition, conversions: list[int]) -> None:
    await fill(partition, 1)
    for _ in range(2):
        assert await spans(partition, 0, 1 << 20, Magic.PULSAR) == [(0, 9)]
        assert await spans(partition, 0, 1 << 20, Magic.IGGY) == [(0, 9)]
        assert await spans(partition, 0, 1 << 20, Magic.KAFKA) == [(0, 9)]
    assert len(conversions) == 2


async def test_what_comes_later_is_seen(partition: Partition) -> None:
    await fill(partition, 1)
    assert await spans(partition, 0, 1 << 20) == [(0, 9)]
    assert await spans(partition, 10, 1 << 20) == []
    await fill(partition, 1)
    assert await spans(partition, 10, 1 << 20) == [(10, 19)]
    assert await spans(partition, 20, 1 << 20) == []


async def test_own_batches_behind_foreign_ones_keep_to_the_limit(partition: Partition) -> None:
    await fill(partition, 2, value_size=1000)
    for _ in range(3):
        partition.append(message_batch(2, body=bytes(1000)))
    await partition.flushed()
    assert await spans(partition, 0, 1) == [(0, 9)]
    assert await spans(partition, 10, 1) == [(10, 19)]
    # The read goes on where the last one ended, so more than this one batch was read.
    assert await spans(partition, 20, 1) == [(20, 21)]
    assert await spans(partition, 22, 1 << 20) == [(22, 23), (24, 25)]


async def test_the_answer_ends_before_a_batch_that_can_not_be_read(partition: Partition) -> None:
    await fill(partition, 2)
    body = b"no record at all"
    partition.append(
        [build_header(Magic.KAFKA, body, record_count=1, base_timestamp=0, max_timestamp=0), body]
    )
    await partition.flushed()
    await fill(partition, 1)
    assert await spans(partition, 0, 1 << 20) == [(0, 9), (10, 19)]
    with pytest.raises(MalformedBatchError) as raised:
        await partition.read(20, 1 << 20, Magic.PULSAR)
    assert (raised.value.base_offset, raised.value.next_offset) == (20, 21)
    assert await spans(partition, 21, 1 << 20) == [(21, 30)]


@pytest.mark.parametrize("target", [Magic.KAFKA, Magic.IGGY])
async def test_readers_that_can_not_be_told_pass_over_what_nobody_can_read(
    partition: Partition, target: Magic, caplog: pytest.LogCaptureFixture
) -> None:
    body = b"no message at all"
    magic = Magic.PULSAR if target == Magic.KAFKA else Magic.KAFKA
    for _ in range(2):
        times = {"base_timestamp": 0, "max_timestamp": 0}
        partition.append([build_header(magic, body, record_count=3, **times), body])
    await partition.flushed()
    await fill(partition, 1)
    for start in (0, 3):
        (gap,) = await partition.read(start, 1, target)
        ((_, header),) = walk(gap)
        found = (header.base_offset, header.next_offset, header.record_count)
        assert found == (start, start + 3, 0)
        assert "left out: batch at offset" in caplog.text
    assert (await spans(partition, 6, 1 << 20, target))[0] == (6, 15)


async def test_what_takes_too_much_memory_is_not_passed_over(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = bytearray(kafka_batch([Record(bytes(1 << 20))], codec=1))
    partition.append([batch])
    await partition.flushed()

    def limited(codec: int, compressed: memoryview, _most: int) -> object:
        return inflate_kafka(codec, compressed, 1 << 16)

    monkeypatch.setattr("penstock.records.kafka.decode.inflate_kafka", limited)
    with pytest.raises(OverLimitError):
        await partition.read(0, 1, Magic.IGGY)


async def test_an_offset_that_is_not_there_is_refused_whatever_is_kept(
    partition: Partition,
) -> None:
    await fill(partition, 1)
    assert await spans(partition, 0, 1 << 20) == [(0, 9)]
    for offset in (-1, 11):
        with pytest.raises(OffsetOutOfRangeError):
            await partition.read(offset, 1 << 20, Magic.PULSAR)


async def test_no_more_is_kept_than_the_limit(
    partition: Partition, conversions: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(partition, 1)
    kept = len((await partition.read(0, 1, Magic.PULSAR))[0])
    monkeypatch.setattr(conversion_cache, "CONVERTED_BYTES", kept)
    assert await spans(partition, 0, 1) == [(0, 9)]
    assert len(conversions) == 1
    assert await spans(partition, 0, 1, Magic.IGGY) == [(0, 9)]
    assert await spans(partition, 0, 1) == [(0, 9)]
    assert len(conversions) == 3, "each had to make room for the other"


async def test_nothing_is_kept_of_a_deleted_topic(partition: Partition) -> None:
    await fill(partition, 1)
    conversions = partition._conversions
    assert await spans(partition, 0, 1) == [(0, 9)]
    partition.deleted = True
    partition.forget()
    assert not conversions._kept
    assert conversions._held.size == 0
