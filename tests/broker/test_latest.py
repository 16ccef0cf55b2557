"""Goal: a reader that waits is given what was appended as the file has it, without the file."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faulty_files import FaultyFileSystem
from penstock import limits
from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.config import TopicConfig
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log import Flusher, LocalLog, LogConfig, OffsetOutOfRangeError
from penstock.log.errors import LogWriteError
from penstock.log.header import Magic, build_header
from penstock.memory import Memory

CONFIG = LogConfig(segment_bytes=3_000)

Open = Callable[[str], Any]


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
async def partition(
    flusher: Flusher, disk: FaultyFileSystem, memory: Memory
) -> AsyncIterator[Partition]:
    topic: Any = SimpleNamespace(
        name=TopicName.from_kafka("t"), config=TopicConfig.of({}, BrokerSettings())
    )
    log = LocalLog.open(Path("/data/0"), CONFIG, disk, flusher)
    opened = await Partition.open(topic, 0, 7, log, ConversionCache(memory))
    yield opened
    opened.close()


def batch(size: int = 100, records: int = 1, magic: Magic = Magic.KAFKA) -> list[bytearray]:
    body = random.Random(size).randbytes(size)
    stamps = {"base_timestamp": 1, "max_timestamp": 1}
    return [build_header(magic, body, record_count=records, **stamps), bytearray(body)]


def ignore() -> None:
    """A reader waits."""


def count_reads(disk: FaultyFileSystem) -> list[Path]:
    found: list[Path] = []

    def hook(operation: str, path: Path) -> None:
        if operation.startswith("pread"):
            found.append(path)

    disk.hook = hook
    return found


async def joined(partition: Partition, offset: int, max_bytes: int = 1 << 20) -> bytes:
    return b"".join(await partition.read(offset, max_bytes, Magic.KAFKA))


async def test_what_a_reader_waits_for_is_not_read_from_the_file(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    partition.append(batch())
    await partition.flushed()
    reads = count_reads(disk)
    assert await joined(partition, 0)
    assert reads, "nobody waited for this one"
    reads.clear()
    partition.add_listener(ignore)
    for offset in range(1, 40):
        flushed = partition.durable(partition.append(batch(offset)))
        assert await joined(partition, offset) == b"", "it is not safe"
        await flushed
        assert len(await joined(partition, offset)) == 61 + offset
    assert reads == []
    # Who comes later than the others finds the place, although nobody read there.
    partition.remove_listener(ignore)
    await partition.durable(partition.append(batch(7)))
    assert len(await joined(partition, 40)) == 61 + 7


async def test_it_is_what_the_file_has(partition: Partition, memory: Memory) -> None:
    rng = random.Random(5)
    starts = [0]
    for _ in range(150):
        waits = rng.random() < 0.8
        if waits:
            partition.add_listener(ignore)
        for _ in range(rng.randrange(1, 5)):
            records = rng.randrange(1, 4)
            partition.append(batch(rng.choice([10, 200, 200, 200, 9_000]), records))
            starts.append(partition.end_offset)
        if waits:
            partition.remove_listener(ignore)
        await partition.flushed()
        wanted = [(start, most) for start in starts[-6:] for most in (1, 300, 1_000, 1 << 20)]
        kept = [await joined(partition, *each) for each in wanted]
        partition._conversions.latest.forget(partition._log)
        for (offset, max_bytes), data in zip(wanted, kept, strict=True):
            stored = await joined(partition, offset, max_bytes)
            # No answer of a file goes on behind its segment.
            assert data == stored or (max_bytes > 300 and data.startswith(stored))
            assert bool(stored) == (offset < partition.end_offset)
        assert 0 <= memory.caches.used <= limits.LATEST_BYTES


async def test_it_is_given_back_when_memory_is_short_and_when_the_log_goes(
    partition: Partition, memory: Memory
) -> None:
    partition.add_listener(ignore)
    for _ in range(100):
        partition.append(batch(1_000))
    assert memory.caches.used == limits.LATEST_BATCHES * 1_061
    partition._conversions.latest.empty()
    assert memory.caches.used == 0
    partition.append(batch(1_000))
    assert memory.caches.used == 1_061
    await partition.flushed()
    partition.deleted = True
    partition.forget()
    assert memory.caches.used == 0


async def test_what_was_trimmed_or_could_not_be_written_is_not_handed_out(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    partition.add_listener(ignore)
    for size in (10, 20, 30):
        partition.append(batch(size))
    await partition.flushed()
    await partition.trim(1)
    with pytest.raises(OffsetOutOfRangeError):
        await joined(partition, 0)
    assert len(await joined(partition, 1, 1)) == 61 + 20

    def fail(operation: str, path: Path) -> None:
        if operation == "pwritev" and path.suffix == ".log":
            raise OSError(28, "no space left")

    disk.hook = fail
    with pytest.raises(LogWriteError):
        await partition.durable(partition.append(batch(40)))
    disk.hook = ignore_operation
    await partition.durable(partition.append(batch(50)))
    assert len(await joined(partition, 3)) == 61 + 50


def ignore_operation(operation: str, path: Path) -> None:
    del operation, path


async def test_a_reader_of_another_encoding_has_it_converted(partition: Partition) -> None:
    latest = partition._conversions.latest
    partition.add_listener(ignore)
    partition.append(batch(50, magic=Magic.PULSAR))
    partition.append(batch(60))
    await partition.flushed()
    read = (partition._log, 0, 1 << 20)
    assert latest.read(*read, Magic.KAFKA, 2) is None, "that is for the conversions"
    assert latest.read(*read, Magic.PULSAR, 2) is None, "the encodings are mixed"
    assert latest.read(partition._log, 1, 1 << 20, Magic.KAFKA, 2) is not None
