"""Goal: what a read has found to hold nothing for its readers is not read again by the next one,
and nothing else is left out.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.broker import Broker
from penstock.broker.reading.entries import EntryReader
from penstock.broker.reading.unseen import Unseen
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.iggy.kept import Kept
from penstock.iggy.polling import Wanted, poll, poll_kept
from penstock.log.header import Magic
from penstock.memory import Memory
from running import running
from stored_batches import Record, kafka_batch
from transactional import as_part_of, end

ABORTED = 1_500
"""More than are read at once."""
BATCH = kafka_batch([Record(b"v", b"k")])


async def partition_of(broker: Broker) -> Partition:
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    (partition,) = topic.partitions
    await partition.opened()
    partition._verification.verify = lambda *_: None  # type: ignore[method-assign]
    return partition


async def fill(partition: Partition) -> None:
    """Write a message, much that is aborted, and another message."""
    partition.append([bytearray(BATCH)])
    for _ in range(ABORTED):
        partition.append([as_part_of(BATCH, 7)])
        end(partition, 7, committed=False)
    partition.append([bytearray(BATCH)])
    await partition.flushed()


def counted(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the offsets at which the log is read from now on."""
    found: list[int] = []
    read = partition._reader.read

    async def counting(offset: int, *rest: Any) -> Any:
        found.append(offset)
        return await read(offset, *rest)

    monkeypatch.setattr(partition._reader, "read", counting)
    return found


async def test_polls_read_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, BrokerSettings()) as broker:
        partition = await partition_of(broker)
        await fill(partition)
        reads = counted(partition, monkeypatch)
        kept, last = Kept(broker.memory), partition.end_offset - 1
        assert (await poll(kept, partition, Wanted(1, 10))).last_offset == last
        assert len(reads) > 2
        await poll(Kept(broker.memory), partition, Wanted(1, 10))
        reads.clear()
        polled = await poll(Kept(broker.memory), partition, Wanted(1, 10))
        assert (polled.messages, polled.last_offset) == (1, last)
        assert reads == [last]
        both = await poll(Kept(broker.memory), partition, Wanted(0, 10))
        assert (both.messages, both.last_offset) == (2, last)
        partition.append([bytearray(BATCH)])
        await partition.flushed()
        assert (await poll(kept, partition, Wanted(5, 10))).messages == 2
        assert (await poll(kept, partition, Wanted(5, 1))).messages == 1
        found = poll_kept(kept, partition, Wanted(5, 1))
        assert found is not None
        assert found.last_offset == last


async def test_readers_of_pulsar_read_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, BrokerSettings()) as broker:
        partition = await partition_of(broker)
        await fill(partition)
        reads = counted(partition, monkeypatch)
        last = partition.end_offset - 1
        skipped: list[tuple[int, int]] = []
        for number in range(2):
            reads.clear()
            skipped.clear()
            reader = EntryReader(partition, 1, Magic.PULSAR, skipped.extend)
            assert await reader.fill()
            entry = reader.take()
            assert entry is not None
            assert entry.header.base_offset == last
            assert (skipped[0][0], skipped[-1][1]) == (1, last)
            assert all(one[1] == other[0] for one, other in pairwise(skipped))
            assert (reads == [last]) == (number > 0)


async def test_it_is_forgotten_with_what_is_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, BrokerSettings()) as broker:
        partition = await partition_of(broker)
        await fill(partition)
        await poll(Kept(broker.memory), partition, Wanted(0, 10))
        assert broker.memory.producers.used > 0
        assert partition.unseen.behind(Magic.IGGY, 500) == partition.end_offset - 1
        await partition.trim(partition.end_offset)
        assert partition.unseen.behind(Magic.IGGY, 500) == 500


ranges = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(
    lambda each: (each[0] * 100, (each[0] + each[1]) * 100)
)


@given(st.lists(ranges, max_size=30), st.integers(0, 60), st.sampled_from([4, 1_000]))
def test_it_is_what_was_noted(noted: list[tuple[int, int]], trimmed: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.broker.reading.unseen._LEAST", 1)
        patch.setattr("penstock.limits.UNSEEN_RANGES", most)
        memory = Memory(1 << 30)
        unseen = Unseen(memory.producers)
        known: set[int] = set()
        for start, stop in noted:
            unseen.note(Magic.IGGY, start, stop)
            known.update(range(start, stop, 100))
        unseen.trim(trimmed * 100)
        assert unseen._held.size <= 16 * min(most, len(noted))
        for offset in range(trimmed * 100, 6_000, 100):
            found = unseen.behind(Magic.IGGY, offset)
            assert {*range(offset, found, 100)} <= known
            if most > len(noted):
                assert found not in known
            assert unseen.behind(Magic.PULSAR, offset) == offset
        unseen.clear()
        assert unseen._held.size == 0
