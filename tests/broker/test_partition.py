"""One partition as its producers and readers of all protocols meet it: what its log has alone is
in tests/log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faulty_files import FaultyFileSystem, Survival
from penstock import records
from penstock.broker.errors import UnknownTopicError
from penstock.broker.reading import conversion_cache
from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.config import TopicConfig
from penstock.broker.topics.leader_epochs import UNKNOWN_EPOCH, LeaderEpochs
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.isolation import Isolation
from penstock.log import Flusher, LocalLog, LogConfig, OffsetOutOfRangeError
from penstock.log.header import HEADER, Magic, build_header, walk
from penstock.memory import Memory
from receivers import message_batch
from stored_batches import Record, chunk_batch, kafka_batch

FOLDER = Path("/data/0")
CONFIG = LogConfig(segment_bytes=4_000, checkpoint_bytes=8_000)

Open = Callable[..., Any]


@pytest.fixture
def open_partition(flusher: Flusher, disk: FaultyFileSystem) -> Open:
    async def open_at(
        epoch: int = 0, files: FaultyFileSystem = disk, config: LogConfig = CONFIG
    ) -> Partition:
        topic: Any = SimpleNamespace(
            name=TopicName.from_kafka("t"), config=configured("acknowledged")
        )
        log = LocalLog.open(FOLDER, config, files, flusher, epoch)
        return await Partition.open(topic, 0, 7, log, ConversionCache(Memory()))

    return open_at


@pytest.fixture
async def partition(open_partition: Open) -> AsyncIterator[Partition]:
    opened = await open_partition()
    yield opened
    opened.close()


def configured(flush: str) -> TopicConfig:
    return TopicConfig.of({"flush": flush}, BrokerSettings())


def batch(count: int = 1, body: bytes = b"body", **fields: int) -> list[bytearray]:
    values = {"record_count": count, "base_timestamp": 1, "max_timestamp": 1, **fields}
    return [build_header(Magic.KAFKA, body, **values) + body]


def append(partition: Partition, batches: int) -> None:
    for _ in range(batches):
        partition.append(batch(2, bytes(100)))


async def read(partition: Partition, offset: int, magic: Magic = Magic.KAFKA) -> list[int]:
    parts = await partition.read(offset, 1 << 20, magic)
    return [header.base_offset for part in parts for _, header in walk(part)]


# Leader epochs


async def write_epochs(open_partition: Open, *epochs: tuple[int, int]) -> Partition:
    """Open a partition at one epoch after the other; write so many batches of two at each."""
    for epoch, batches in epochs[:-1]:
        partition = await open_partition(epoch)
        append(partition, batches)
        await partition.flushed()
        partition.close()
    partition = await open_partition(epochs[-1][0])
    append(partition, epochs[-1][1])
    await partition.flushed()
    return partition


def ends(partition: Partition, *epochs: int) -> list[tuple[int, int]]:
    return [tuple(partition.epoch_end(epoch)) for epoch in epochs]


async def test_epochs_are_known_after_each_start(open_partition: Open) -> None:
    partition = await write_epochs(open_partition, (0, 3), (1, 2), (2, 0), (3, 4))
    expected = [(0, 6), (1, 10), (1, 10), (3, 18)]
    assert partition.leader_epoch == 3
    assert ends(partition, 0, 1, 2, 3) == expected
    assert ends(partition, 4, -1) == [UNKNOWN_EPOCH, UNKNOWN_EPOCH]
    partition.close()
    again = await open_partition(3)
    assert ends(again, 0, 1, 2, 3) == expected
    again.close()


async def test_the_epoch_of_a_start_ends_where_the_next_start_writes(open_partition: Open) -> None:
    partition = await write_epochs(open_partition, (0, 3), (4, 0))
    assert ends(partition, 0, 3, 4) == [(0, 6), (0, 6), (4, 6)]
    append(partition, 1)
    await partition.flushed()
    assert ends(partition, 0, 4) == [(0, 6), (4, 8)]
    partition.close()


async def test_a_new_partition_knows_its_first_epoch(open_partition: Open) -> None:
    partition = await open_partition(5)
    assert ends(partition, 0, 5, 6) == [(0, 0), (5, 0), UNKNOWN_EPOCH]
    partition.close()


@pytest.mark.parametrize("checkpoint", ["whole", "gone", "damaged"])
async def test_epochs_are_known_after_a_crash(
    open_partition: Open, disk: FaultyFileSystem, checkpoint: str
) -> None:
    partition = await write_epochs(open_partition, (0, 20), (1, 20), (3, 20))
    await partition.flushed()
    crashed = disk.after_crash(Survival.NONE)
    if checkpoint == "gone":
        crashed.unlink(FOLDER / "checkpoint")
    elif checkpoint == "damaged":
        crashed.content(FOLDER / "checkpoint").live[20] ^= 1
    again = await open_partition(4, crashed)
    assert ends(again, 0, 1, 2, 3, 4) == [(0, 40), (1, 80), (1, 80), (3, 120), (4, 120)]
    again.close()
    partition.close()


async def test_headers_are_read_once_for_all_that_is_remembered(
    open_partition: Open, disk: FaultyFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = await open_partition(config=LogConfig())
    for sequence in range(300):
        partition.append(batch(producer_id=7, producer_epoch=0, base_sequence=sequence))
        if sequence == 0:
            await partition.flushed()  # The first flush takes a checkpoint.
    await partition.flushed()
    crashed = disk.after_crash(Survival.NONE)
    replayed: Counter[int] = Counter()
    update = LeaderEpochs.update

    def counted(epochs: LeaderEpochs, header: Any, batch: Any) -> None:
        replayed[header.base_offset] += 1
        update(epochs, header, batch)

    monkeypatch.setattr(LeaderEpochs, "update", counted)
    reads = 0

    def hook(operation: str, path: Path) -> None:
        nonlocal reads
        reads += operation == "pread" and path.suffix == ".log"

    log_reads = []
    for _ in range(2):  # The second start has a checkpoint, and reads nothing.
        crashed.hook = hook
        reads = 0
        again = await open_partition(1, crashed)
        log_reads.append(reads)
        crashed.hook = None
        assert again.append(batch(producer_id=7, producer_epoch=0, base_sequence=299)) == 299
        again.close()
    assert replayed == Counter(range(1, 300))
    assert log_reads[0] <= 4
    assert log_reads[1] == 0
    partition.close()


async def test_a_state_that_is_of_another_version_is_read_from_the_log(
    open_partition: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(LeaderEpochs, "snapshot", lambda _: b"of another version")
    partition = await write_epochs(open_partition, (0, 20), (1, 20))
    partition.close()
    monkeypatch.undo()
    again = await open_partition(2)
    assert ends(again, 0, 1, 2) == [(0, 40), (1, 80), (2, 80)]
    assert "t-0: read from its beginning" in caplog.text
    again.close()


# Trim


async def test_what_was_given_up_is_out_of_range(open_partition: Open) -> None:
    partition = await write_epochs(open_partition, (0, 40), (1, 40))
    size = partition.size_bytes
    await partition.trim(101)
    assert partition.start_offset == 101
    assert partition.size_bytes < 0.6 * size
    assert (await read(partition, 101))[0] == 100
    for offset in (0, 100):
        with pytest.raises(OffsetOutOfRangeError) as raised:
            await partition.read(offset, 100, Magic.KAFKA)
        assert raised.value.start_offset == 101
    assert ends(partition, 0, 1) == [(0, 80), (1, 160)]
    partition.close()
    again = await open_partition(2)
    assert again.start_offset == 101
    assert ends(again, 0, 1, 2) == [(0, 80), (1, 160), (2, 160)]
    again.close()


async def test_no_more_is_given_up_than_a_reader_sees(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(partition, 10)
    await partition.flushed()
    monkeypatch.setattr(Partition, "readable_end", lambda *_: 14)
    with pytest.raises(OffsetOutOfRangeError) as raised:
        await partition.trim(15)
    assert (partition.start_offset, raised.value.end_offset) == (0, 14)
    await partition.trim(14)
    assert partition.start_offset == 14
    partition.deleted = True
    with pytest.raises(UnknownTopicError):
        await partition.trim(14)


async def test_producers_are_remembered_whose_batches_were_given_up(open_partition: Open) -> None:
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    partition = await open_partition()
    partition.append(batch(**sent))
    append(partition, 80)
    await partition.flushed()
    await partition.trim(partition.end_offset)
    partition.close()
    again = await open_partition(1)
    assert again.append(batch(**sent)) == 0
    again.close()


async def test_conversions_of_what_was_given_up_are_dropped(partition: Partition) -> None:
    await records.prepare()
    for _ in range(8):
        partition.append([bytearray(kafka_batch([Record(bytes(100))] * 10))])
    await partition.flushed()
    conversions = partition._conversions
    for offset in (0, 40):
        assert await read(partition, offset, Magic.PULSAR)
    await partition.trim(50)
    ((_, runs),) = conversions._kept.items()
    assert [run.start_offset for run in runs] == [40]
    assert conversions._held.size == sum(run.size for run in runs)
    assert await read(partition, 50, Magic.PULSAR)
    with pytest.raises(OffsetOutOfRangeError):
        await partition.read(40, 100, Magic.PULSAR)
    await partition.trim(80)
    assert not conversions._kept
    assert conversions._held.size == 0


# What readers see


async def test_chunks_are_found_behind_damage_and_not_below_the_start(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    await records.prepare()
    parts = [b"one ", b"two ", b"three"]
    sizes = []
    for number in (0, 1, 1, 2, 2):
        sizes.append(partition.size_bytes)
        partition.append([bytearray(chunk_batch(parts, number))])
        await partition.flushed()
    disk.content(FOLDER / f"{0:020d}.log").live[sizes[1] + 70] ^= 1
    (whole,) = await partition.read(3, 1, Magic.KAFKA)
    assert b"".join(parts) in bytes(whole)
    await partition.trim(2)
    (gap,) = await partition.read(4, 1, Magic.KAFKA)
    assert [header.record_count for _, header in walk(gap)] == [0]


@pytest.mark.parametrize("magic", [Magic.KAFKA, Magic.PULSAR])
async def test_no_reader_sees_what_is_not_readable(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, magic: Magic
) -> None:
    await records.prepare()
    for _ in range(6):
        partition.append([bytearray(kafka_batch([Record(bytes(100))] * 10))])
    await partition.flushed()
    seen = [0, 10, 20, 30, 40, 50]
    for _ in range(2):  # The second time, all of it was converted before.
        for end in (0, 10, 30, 35, 60):
            monkeypatch.setattr(Partition, "readable_end", lambda *_, end=end: end)
            for offset in range(0, 60, 10):
                expected = [base for base in seen if offset <= base and base + 10 <= end]
                found = await read(partition, offset, magic)
                assert found == expected[: len(found)]
                assert bool(found) == bool(expected)
        monkeypatch.undo()
        assert await read(partition, 0, magic)


async def test_what_is_safe_depends_on_the_flush_policy(partition: Partition) -> None:
    offset = partition.append(batch(3))
    assert (partition.safe_offset, partition.end_offset) == (0, 3)
    partition.topic.config = configured("written")  # type: ignore[misc]
    assert partition.safe_offset == 0
    await partition.written(offset)
    assert partition.safe_offset == 3
    partition.topic.config = configured("acknowledged")  # type: ignore[misc]
    waiting = partition.durable(offset)
    await asyncio.sleep(0)
    assert partition.safe_offset == 0
    await waiting
    assert partition.safe_offset == 3
    for isolation in Isolation:
        assert partition.readable_end(isolation) == 3


async def test_a_reader_of_its_own_encoding_has_nothing_to_do_with_conversions(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any) -> None:
        raise AssertionError("nothing is to be converted")

    monkeypatch.setattr(ConversionCache, "read", refuse)
    monkeypatch.setattr(conversion_cache, "convert", refuse)
    append(partition, 40)
    await partition.flushed()
    for offset in range(0, 80, 5):
        (data,) = await partition.read(offset, 700, Magic.KAFKA)
        assert {header.magic for _, header in walk(data)} == {Magic.KAFKA}
    partition.append(message_batch(2))
    await partition.flushed()
    assert (await read(partition, 0))[0] == 0, "what was not met yet does not matter"
    with pytest.raises(AssertionError, match="nothing is to be converted"):
        await partition.read(80, 1 << 20, Magic.KAFKA)


async def test_no_header_of_a_batch_that_is_handed_out_as_it_is_becomes_an_object(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(partition, 20)
    await partition.flushed()
    await read(partition, 0)  # From here on the place is known.
    parsed = 0
    unpack = HEADER.unpack_from
    another = batch()

    class Counting:
        def unpack_from(self, *arguments: Any) -> Any:
            nonlocal parsed
            parsed += 1
            return unpack(*arguments)

    monkeypatch.setattr("penstock.log.header.HEADER", Counting())
    (data,) = await partition.read(0, 1 << 20, Magic.KAFKA)
    assert len(data) == partition.size_bytes
    assert parsed == 0
    partition.append(another)
    assert parsed == 1
