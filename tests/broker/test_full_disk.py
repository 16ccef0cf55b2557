"""Goal: on a disk that is full nothing is lost, what can't be compacted is compacted later, and
what is due to go makes room.

Method: a broker in a folder that has room for so much; in the long runs a small file system that
is really full.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics import storage
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.limits import RESERVE_BYTES
from penstock.log import LogConfig, LogWriteError, RealFileSystem
from penstock.log.files import RealFile
from penstock.records import decode
from running import running
from small_disk import small_disk
from stored_batches import TIME, Record, kafka_batch

NODE = BrokerSettings(
    log=LogConfig(segment_bytes=100_000),
    compaction_check_ms=86_400_000,
    retention_check_ms=86_400_000,
)
NOW_MS = TIME // 1000 + 60_000
DAY_MS = 86_400_000
DISK_BYTES = 8 << 20
VALUE = bytes(8_000)
SETTINGS = {
    "kept": {"cleanup_policy": "compact"},
    "both": {"cleanup_policy": "compact,delete", "retention_ms": str(DAY_MS)},
    "aged": {"retention_ms": str(DAY_MS)},
}


class Disk:
    """A folder on a disk that a test can fill."""

    def __init__(self, folder: Path, fill: Callable[[], None]) -> None:
        self.folder = folder
        self.fill = fill
        """From now on there is room for what is given back only."""


class SmallFile(RealFile):
    """A file that grows as far as its disk has room."""

    __slots__ = ("room",)
    room: Callable[[int], bool]

    def pwritev(self, parts: Sequence[bytes | bytearray | memoryview], position: int) -> int:
        grown = position + sum(map(len, parts)) - os.fstat(self.descriptor).st_size
        if grown > 0 and not self.room(grown):
            raise OSError(errno.ENOSPC, "no space is left")
        return super().pwritev(parts, position)


class SmallFileSystem(RealFileSystem):
    """The file system of a folder with room for so many bytes, whoever writes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.most: int | None = None
        """How many bytes, once the disk is full."""

    @property
    def used(self) -> int:
        return sum(each.stat().st_size for each in self.folder.rglob("*") if each.is_file())

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> RealFile:
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        made = SmallFile(os.open(path, flags, 0o644))
        made.room = lambda size: self.most is None or self.used + size <= self.most
        return made


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    files = SmallFileSystem(tmp_path)
    monkeypatch.setattr(storage, "RealFileSystem", lambda: files)

    def fill() -> None:
        files.most = files.used

    return Disk(tmp_path, fill)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        yield Disk(disk.folder, disk.fill)


@asynccontextmanager
async def serving(folder: Path, now_ms: int = NOW_MS) -> AsyncIterator[Broker]:
    async with running(folder, NODE) as broker:
        broker.compaction.now_ms = broker.retention.now_ms = lambda: now_ms
        yield broker


def topics(broker: Broker) -> dict[str, Partition]:
    return {topic.name.topic: topic.partitions[0] for topic in broker.topics.all()}


async def write(partition: Partition, messages: int) -> None:
    """Append messages of three keys, and wait until they are safe."""
    for number in range(messages):
        record = Record(b"%d" % number + VALUE, b"key %d" % (number % 3))
        offset = partition.append([bytearray(kafka_batch([record]))])
        if number % 16 == 15 or number == messages - 1:
            await partition.durable(offset)


async def content(partition: Partition) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Return key and value of each message, by their offsets."""
    await partition.opened()
    found, offset = {}, partition.start_offset
    while offset < partition.readable_end():
        batches = await log_of(partition).read(offset, 1 << 20)
        columns = decode(batches.data)
        for row, at in enumerate(columns.offsets.tolist()):
            found[at] = columns.key(row), columns.value(row)
        offset = batches.next_offset
    return found


def last_of_keys(found: dict[int, tuple[bytes | None, bytes | None]]) -> dict[bytes | None, object]:
    return {key: value for _, (key, value) in sorted(found.items())}


async def check_full_disk(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(disk.folder) as broker:
        for name, config in SETTINGS.items():
            await broker.topics.create(TopicName("public", "default", name), 1, config=config)
        await broker.retention.check()
        for partition in topics(broker).values():
            await write(partition, 60)
        before = {name: await content(each) for name, each in topics(broker).items()}
        disk.fill()
        # Nothing can be compacted, and nothing of that is left behind.
        await broker.compaction.check()
        await broker.compaction.check()
        assert caplog.text.count("kept-0 is not compacted for now: ") == 1
        assert caplog.text.count("both-0 is not compacted for now: ") == 1
        assert not list(disk.folder.rglob("*-*.log"))
        # Nothing can be written either, and who wants to hears of it.
        with pytest.raises(LogWriteError):
            await write(topics(broker)["kept"], 16)
        assert {name: await content(each) for name, each in topics(broker).items()} == before
        # What is due goes, and makes room: also of what is compacted.
        broker.retention.now_ms = lambda: NOW_MS + 2 * DAY_MS
        await broker.retention.check()
        for name in ("both", "aged"):
            assert topics(broker)[name].size_bytes == 0
        assert await content(topics(broker)["kept"]) == before["kept"]
        for name in ("both", "aged"):
            await write(topics(broker)[name], 2)
        # What was refused waits for a while, or for its settings to change.
        await broker.compaction.check()
        assert log_of(topics(broker)["kept"]).replacements == 0
        topic = topics(broker)["kept"].topic
        anew = topic.config.explicit | {"delete_retention_ms": "1000"}
        await broker.topics.configure(topic, lambda _: anew)
        await broker.compaction.check()
        left = await content(topics(broker)["kept"])
        assert len(left) < 20
        assert last_of_keys(left) == last_of_keys(before["kept"])
        ends = {name: each.end_offset for name, each in topics(broker).items()}
    async with serving(disk.folder) as broker:
        assert await content(topics(broker)["kept"]) == left
        assert {name: each.end_offset for name, each in topics(broker).items() if each.is_open} == {
            "kept": ends["kept"]
        }
        for name in ("both", "aged"):
            assert list(await content(topics(broker)[name])) == [ends[name] - 2, ends[name] - 1]


async def test_a_disk_that_is_said_to_be_full(
    simulated: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    await check_full_disk(simulated, caplog)


@pytest.mark.soak
async def test_a_disk_that_is_full(mounted: Disk, caplog: pytest.LogCaptureFixture) -> None:
    assert DISK_BYTES > 4 * RESERVE_BYTES
    await check_full_disk(mounted, caplog)
