"""Transactions as consumers meet them: Fetch, its sessions, ListOffsets and DescribeProducers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kafka_dialog import TOPIC, Dialog
from penstock.broker.broker import Broker
from penstock.broker.topics.partition import Partition
from penstock.kafka.wire import api
from penstock.log.header import walk
from stored_batches import Record, kafka_batch
from transactional import as_part_of, end

COMMITTED = {"isolation_level": 1}
LONG_MS = 60_000


@pytest.fixture
async def partition(broker: Broker, dialog: Dialog) -> AsyncIterator[Partition]:
    broker.topics.verification.verify = lambda *_: None
    await dialog.create_topic()
    topic = broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0)


def write(partition: Partition, producer_id: int | None = None, ms: int = 1_000) -> int:
    batch = bytearray(kafka_batch([Record(bytes(100), time=ms * 1000)]))
    sent = batch if producer_id is None else as_part_of(batch, producer_id)
    return partition.append([sent])


def offsets(result: Any) -> list[int]:
    records = b"".join(result.records) if isinstance(result.records, list) else result.records
    return [header.base_offset for _, header in walk(records)]


def aborted(result: Any) -> list[tuple[int, int]] | None:
    named = result.aborted_transactions
    return None if named is None else [(each.producer_id, each.first_offset) for each in named]


async def history(partition: Partition) -> None:
    """One that was aborted, one that was committed, and one that is open from offset 6 on."""
    write(partition, 1)
    write(partition, 2)
    end(partition, 1, committed=False)
    write(partition)
    end(partition, 2, committed=True)
    write(partition)
    write(partition, 3)
    write(partition)
    await partition.flushed()


async def test_a_fetch_ends_at_the_last_stable_offset_and_names_what_was_aborted(
    partition: Partition, dialog: Dialog
) -> None:
    await history(partition)
    result = await dialog.fetch(0, **COMMITTED)
    assert offsets(result) == [0, 1, 2, 3, 4, 5]
    assert (result.high_watermark, result.last_stable_offset) == (8, 6)
    assert aborted(result) == [(1, 0)]
    # Behind the marker of what was aborted nothing of it comes.
    assert aborted(await dialog.fetch(3, **COMMITTED)) == []
    at_the_end = await dialog.fetch(6, **COMMITTED)
    assert (at_the_end.error_code, offsets(at_the_end), aborted(at_the_end)) == (0, [], [])


async def test_who_reads_all_is_named_nothing(partition: Partition, dialog: Dialog) -> None:
    await history(partition)
    result = await dialog.fetch(0)
    assert offsets(result) == [*range(8)]
    assert (result.high_watermark, result.last_stable_offset) == (8, 6)
    assert aborted(result) is None


@pytest.mark.parametrize("version", [4, 11, 12])
async def test_every_version_names_what_was_aborted(
    partition: Partition, dialog: Dialog, version: int
) -> None:
    await history(partition)
    answer = await dialog.ask("Fetch", version, **dialog.fetch_fields((0, 0), **COMMITTED))
    assert aborted(answer.responses[0].partitions[0]) == [(1, 0)]


async def test_old_clients_get_no_control_messages(partition: Partition, dialog: Dialog) -> None:
    end(partition, 9, committed=True)
    write(partition, 1)
    end(partition, 1, committed=True)
    await partition.flushed()
    answer = await dialog.ask("Fetch", 3, **dialog.fetch_fields((0, 0)))
    messages = bytes(answer.responses[0].partitions[0].records)
    assert int.from_bytes(messages[:8]) == 1
    assert len(messages) == 12 + int.from_bytes(messages[8:12])


async def test_a_fetch_waits_for_the_end_of_a_transaction(
    partition: Partition, dialog: Dialog
) -> None:
    write(partition, 1)
    await partition.flushed()
    # More is written than the least that is asked for, and none of that can be read.
    waiting = dialog.send(
        "Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=LONG_MS, min_bytes=150, **COMMITTED)
    )
    for _ in range(5):
        await partition.durable(write(partition, 1))
        await asyncio.sleep(0)
    assert not waiting.done()
    await partition.durable(end(partition, 1, committed=True))
    async with asyncio.timeout(30):
        answer = await waiting
    assert offsets(answer.responses[0].partitions[0]) == [*range(7)]


async def test_a_session_waits_for_the_end_of_a_transaction(
    partition: Partition, dialog: Dialog
) -> None:
    write(partition, 1)
    await partition.flushed()
    fields = dialog.fetch_fields((0, 0), **COMMITTED)
    first = await dialog.ask("Fetch", 12, **fields, session_epoch=0)
    assert first.session_id
    waiting = dialog.send(
        "Fetch",
        12,
        max_wait_ms=LONG_MS,
        min_bytes=150,
        max_bytes=1 << 20,
        session_id=first.session_id,
        session_epoch=1,
        topics=[],
        **COMMITTED,
    )
    for _ in range(5):
        await partition.durable(write(partition, 1))
        await asyncio.sleep(0)
    assert not waiting.done()
    await partition.durable(end(partition, 1, committed=True))
    async with asyncio.timeout(30):
        answer = await waiting
    assert offsets(answer.responses[0].partitions[0]) == [*range(7)]


async def listed(dialog: Dialog, timestamp: int, isolation_level: int) -> tuple[int, int]:
    request = api("ListOffsets").request
    part = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=[part])
    answer = await dialog.ask("ListOffsets", 7, isolation_level=isolation_level, topics=[topic])
    found = answer.topics[0].partitions[0]
    return found.offset, found.timestamp


async def test_offsets_are_those_that_the_reader_sees(partition: Partition, dialog: Dialog) -> None:
    write(partition, ms=1_000)
    write(partition, 1, ms=2_000)
    write(partition, ms=3_000)
    await partition.flushed()
    assert await listed(dialog, -1, 0) == (3, -1)
    assert await listed(dialog, -1, 1) == (1, -1)
    assert await listed(dialog, 1_500, 0) == (1, 2_000)
    assert await listed(dialog, 1_500, 1) == (-1, -1)
    assert await listed(dialog, -3, 0) == (2, 3_000)
    assert await listed(dialog, -3, 1) == (0, 1_000)
    await partition.durable(end(partition, 1, committed=True))
    assert await listed(dialog, -1, 1) == (4, -1)
    assert await listed(dialog, 1_500, 1) == (1, 2_000)


async def test_records_are_deleted_up_to_the_high_watermark(
    partition: Partition, dialog: Dialog
) -> None:
    write(partition, 1)
    write(partition)
    await partition.flushed()
    request = api("DeleteRecords").request
    part = request.DeleteRecordsPartition(partition_index=0, offset=-1)
    topic = request.DeleteRecordsTopic(name=TOPIC, partitions=[part])
    answer = await dialog.ask("DeleteRecords", topics=[topic], timeout_ms=1000)
    assert answer.topics[0].partitions[0].low_watermark == 2
    result = await dialog.fetch(2, **COMMITTED)
    assert (result.error_code, result.last_stable_offset, result.log_start_offset) == (0, 2, 2)


async def test_producers_are_described_with_the_transaction_that_they_have_open(
    partition: Partition, dialog: Dialog
) -> None:
    write(partition)
    batch = as_part_of(bytes(kafka_batch([Record(b"")])), 4, epoch=2, sequence=0)
    partition.append([batch])
    await partition.flushed()
    described = await _describe(dialog)
    assert [(each.producer_id, each.current_txn_start_offset) for each in described] == [(4, 1)]
    end(partition, 4, committed=True)
    assert [each.current_txn_start_offset for each in await _describe(dialog)] == [-1]


async def _describe(dialog: Dialog) -> list[Any]:
    request = api("DescribeProducers").request
    topic = request.TopicRequest(name=TOPIC, partition_indexes=[0])
    answer = await dialog.ask("DescribeProducers", topics=[topic])
    found: list[Any] = answer.topics[0].partitions[0].active_producers
    return found
