"""Goal: whoever reads what is committed is told of no transaction of which the marker is gone, for
it would take what its producer wrote later for a part of it; and a log does not remember for ever
what has left it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.aborted import AbortedTransactions
from penstock.broker.transactions.aborted_stretch import STRETCH, AbortedTransaction
from penstock.log import LogConfig
from penstock.log.header import ATTRIBUTE_CONTROL, Magic, walk
from penstock.records import decode
from running import running
from stored_batches import TIME, Record, kafka_batch
from transactional import as_part_of, end

NODE = BrokerSettings(log=LogConfig(segment_bytes=100_000), compaction_check_ms=86_400_000)
ABORTED = STRETCH + 100
CONFIG = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0",
    "delete_retention_ms": "0",
}


@asynccontextmanager
async def compacted(folder: Path) -> AsyncIterator[tuple[Broker, Partition]]:
    async with running(folder, NODE) as broker:
        broker.compaction.now_ms = lambda: TIME // 1000 + 60_000
        topics = broker.topics.all()
        name = TopicName("public", "default", "t")
        topic = topics[0] if topics else await broker.topics.create(name, 1, config=CONFIG)
        (partition,) = topic.partitions
        await partition.opened()
        partition._verification.verify = lambda *_: None  # type: ignore[method-assign]
        yield broker, partition


async def compact(broker: Broker, partition: Partition, times: int) -> None:
    for number in range(times):
        partition.append([bytearray(kafka_batch([Record(bytes(100_000), b"%d" % number)]))])
        await partition.flushed()
        await broker.compaction.check()


def told(partition: Partition) -> set[int]:
    """The markers of those transactions that readers are told of."""
    return {each.last_offset for each in partition.aborted(0, partition.readable_end())}


async def markers(partition: Partition) -> set[int]:
    return {
        header.base_offset
        async for header in log_of(partition).headers(0)
        if header.attributes & ATTRIBUTE_CONTROL
    }


@pytest.mark.parametrize("encoding", Magic)
async def test_what_is_left_of_a_transaction_is_read_by_all(
    tmp_path: Path, encoding: Magic
) -> None:
    async with compacted(tmp_path) as (broker, partition):
        both = kafka_batch([Record(b"1", b"a"), Record(b"1", b"b")])
        partition.append([as_part_of(both, 7)])
        end(partition, 7, committed=True)
        partition.append([bytearray(kafka_batch([Record(b"2", b"b")]))])
        await compact(broker, partition, 1)
        (found,) = await partition.read(0, 1, encoding)
        columns = decode(found)
        assert [columns.key(row) for row in range(len(columns))] == [b"a"]


async def test_a_marker_stays_as_long_as_readers_are_told_of_its_transaction(
    tmp_path: Path,
) -> None:
    async with compacted(tmp_path) as (broker, partition):
        for _ in range(ABORTED):
            partition.append([as_part_of(kafka_batch([Record(b"never", b"k")]), 7)])
            end(partition, 7, committed=False)
        await compact(broker, partition, 4)
        assert await markers(partition) == told(partition)
        assert len(told(partition)) == ABORTED
    async with compacted(tmp_path) as (broker, partition):
        assert len(told(partition)) == ABORTED - STRETCH
        await compact(broker, partition, 4)
        assert await markers(partition) == told(partition)


async def test_they_are_forgotten_while_the_broker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.ABORTED_TOLD_SECONDS", 0)
    async with compacted(tmp_path) as (broker, partition):
        for _ in range(ABORTED):
            partition.append([as_part_of(kafka_batch([Record(b"never", b"k")]), 7)])
            end(partition, 7, committed=False)
        broker.retention.leases.hold("job", partition.id, 0, 60)
        await compact(broker, partition, 3)
        assert len(told(partition)) == ABORTED
        broker.retention.leases.release("job")
        await compact(broker, partition, 4)
        assert len(told(partition)) == ABORTED - STRETCH
        assert await markers(partition) == told(partition)
        monkeypatch.setattr("penstock.limits.ABORTED_TRANSACTION_BYTES", 30_000)
        partition.append([as_part_of(kafka_batch([Record(b"later", b"k")]), 7)])


async def test_the_loop_makes_nothing_of_each_for_who_compacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compacted(tmp_path) as (broker, partition):
        partition.append([as_part_of(kafka_batch([Record(b"never", b"k")]), 7)])
        end(partition, 7, committed=False)
        await partition.flushed()
        many, count = AbortedTransactions(), 100 * STRETCH
        many.add(AbortedTransaction(7, 0, 1))
        for number in range(2, count):
            many.add(AbortedTransaction(number, 0, number))
        partition.transactions._aborted = many
        make_job, made = broker.compaction._job, []

        def counted(*arguments: Any) -> Any:
            before = sys.getallocatedblocks()
            job = make_job(*arguments)
            made.append(sys.getallocatedblocks() - before)
            return job

        monkeypatch.setattr(broker.compaction, "_job", counted)
        await compact(broker, partition, 2)
        assert made
        assert max(made) < count / 10
        columns = [decode(part) for part in await partition.read(0, 1 << 20, Magic.KAFKA)]
        keys = [each.key(row) for each in columns for row in range(len(each))]
        assert b"k" not in keys


@pytest.mark.parametrize("encoding", Magic)
async def test_who_reads_meanwhile_sees_nothing_of_what_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: Magic
) -> None:
    monkeypatch.setattr("penstock.limits.ABORTED_TOLD_SECONDS", 0)
    async with compacted(tmp_path) as (broker, partition):
        for _ in range(ABORTED):
            partition.append([as_part_of(kafka_batch([Record(b"never", b"k")]), 7)])
            end(partition, 7, committed=False)
        await partition.flushed()
        read, compacted_meanwhile = partition._reader.read, []

        async def slow(*arguments: Any) -> Any:
            found = await read(*arguments)
            if not compacted_meanwhile:
                compacted_meanwhile.append(True)
                await compact(broker, partition, 4)
            return found

        monkeypatch.setattr(partition._reader, "read", slow)
        taken = await partition.read_on(0, 1 << 20, encoding)
        committed = partition.committed_in(0, taken.next_offset)
        assert compacted_meanwhile
        assert all(
            committed.hides(header) or not header.record_count
            for part in taken.parts
            for _, header in walk(part)
            if header.base_offset < STRETCH
        )
