"""Reads never hold the loop up: what is not in memory, or takes long, is read in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from faulty_files import FaultyFile, FaultyFileSystem
from log_batches import (
    DIRECTORY,
    append,
    fill,
    headers_of,
    make_batch,
    open_log,
    read,
    read_all,
)
from patience import PATIENCE_SECONDS, until
from penstock.limits import LOOKED_UP_AT_ONCE_BATCHES, LOOKED_UP_AT_ONCE_BYTES
from penstock.log import (
    Flusher,
    LogClosedError,
    LogConfig,
    OffsetOutOfRangeError,
    RealFileSystem,
    scan,
)
from penstock.parties import ASKING

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200)


class WatchedDisk(FaultyFileSystem):
    """Remembers which reads the loop's thread has made; `gate` holds those of other threads."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        super().__init__()
        self.on_loop: list[str] = []
        self.in_threads: list[str] = []
        self.gate = gate
        self.hook = self._note

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FaultyFile:
        if not write:
            self._note("open", path)
        return super().open(path, write=write, create=create)

    def _note(self, operation: str, path: Path) -> None:
        if operation not in {"open", "pread"}:
            return
        if threading.current_thread() is threading.main_thread():
            self.on_loop.append(f"{operation} {path.name}")
            return
        if not threading.current_thread().name.startswith("read"):
            return  # A flush reads back what it vouches for.
        self.in_threads.append(f"{operation} {path.name}")
        if self.gate is not None:
            assert self.gate.wait(PATIENCE_SECONDS)


async def test_a_disk_that_has_to_be_waited_for_is_read_in_threads(flusher: Flusher) -> None:
    disk = WatchedDisk()
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 15)
    log.close()
    log = open_log(disk, flusher, CONFIG)
    disk.is_slow = True
    disk.on_loop.clear()
    assert await read_all(log) == (stored, [])
    for header in headers_of(stored):
        assert await log.batch_at(header.last_offset) == header
        assert await log.find_time(header.max_timestamp) == header.base_offset
    assert [each async for each in log.headers(0)] == headers_of(stored)
    assert disk.on_loop == []
    assert disk.in_threads
    log.abandon()


async def test_an_index_is_rebuilt_in_a_thread_while_the_log_grows(flusher: Flusher) -> None:
    disk = WatchedDisk()
    log = open_log(disk, flusher, LogConfig(index_interval_bytes=200))
    stored = fill(log, 15)
    log.close()
    index = disk.content(DIRECTORY / f"{0:020d}.index")
    index.live[:] = bytes(len(index.live))
    log = open_log(disk, flusher, LogConfig(index_interval_bytes=200))
    stored += fill(log, 1, first=15)
    disk.is_slow = True
    disk.on_loop.clear()
    last = headers_of(stored)[13]
    looking = asyncio.create_task(log.batch_at(last.last_offset))
    for number in range(16, 45):
        stored += fill(log, 1, first=number)
        await asyncio.sleep(0.001)
    assert await looking == last
    assert log.rebuilt_indexes == 1
    assert not any("index" in each or "pread" in each for each in disk.on_loop)
    for header in headers_of(stored):
        assert await log.batch_at(header.last_offset) == header
        assert await log.find_time(header.max_timestamp) == header.base_offset
    log.close()
    again = open_log(disk, flusher, LogConfig(index_interval_bytes=200))
    for header in headers_of(stored):
        assert await again.batch_at(header.last_offset) == header
    assert again.rebuilt_indexes == 0
    again.abandon()


async def test_what_is_in_memory_is_read_at_once(flusher: Flusher) -> None:
    disk = WatchedDisk()
    log = open_log(disk, flusher, LogConfig())
    stored = fill(log, 15)
    assert await read_all(log) == (stored, [])
    assert disk.in_threads == []
    log.abandon()


@pytest.mark.parametrize(
    ("size", "count"),
    [(300_000, 1 + LOOKED_UP_AT_ONCE_BYTES // 300_000), (0, LOOKED_UP_AT_ONCE_BATCHES + 600)],
)
async def test_a_long_read_is_for_a_thread_although_all_is_in_memory(
    flusher: Flusher, size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_judge", scan.sound_prefix)  # The one that takes each by itself.
    disk = WatchedDisk()
    log = open_log(disk, flusher, LogConfig())
    for number in range(count):
        append(log, make_batch(1, size, seed=number))
    batches = await log.read(0, 64 << 20)
    assert batches.next_offset == count
    assert disk.in_threads
    log.abandon()


async def test_others_are_read_while_one_waits_for_the_disk(flusher: Flusher) -> None:
    gate = threading.Event()
    disk = WatchedDisk(gate)
    log = open_log(disk, flusher, LogConfig())
    stored = fill(log, 15)
    disk.is_slow = True
    waiting = asyncio.create_task(read(log, 0, 64 << 10))
    while not disk.in_threads:
        await asyncio.sleep(0.001)
    disk.is_slow = False
    assert bytes(await read(log, 0, 1)) == stored[0]
    stored += fill(log, 5, first=15)
    gate.set()
    assert bytes(await waiting) == b"".join(stored[:15])
    assert log.corrupt_ranges == 0
    log.abandon()


async def test_a_thread_is_started_for_who_reads_and_not_before() -> None:
    before = set(threading.enumerate())
    flusher = Flusher()
    assert len(_readers(before)) == 1
    gate = threading.Event()
    disk = WatchedDisk(gate)
    log = open_log(disk, flusher, LogConfig())
    fill(log, 15)
    disk.is_slow = True
    waiting = []
    for number in range(20):
        ASKING.set(f"client {number}")
        waiting.append(asyncio.create_task(read(log, 0, 64 << 10)))
    await until(lambda: len(disk.in_threads) == 16)
    gate.set()
    await asyncio.gather(*waiting)
    assert len(_readers(before)) == 16
    log.abandon()
    flusher.close()


def _readers(before: set[threading.Thread]) -> list[str]:
    new = {each.name for each in set(threading.enumerate()) - before}
    return [name for name in new if name.startswith("read_")]


async def test_a_read_that_is_overtaken_says_by_what(flusher: Flusher) -> None:
    gate = threading.Event()
    disk = WatchedDisk(gate)
    log = open_log(disk, flusher, CONFIG)
    fill(log, 15)
    await log.flushed(log.end_offset - 1)
    disk.is_slow = True
    trimmed = asyncio.create_task(read(log, 0, 100))
    closed = asyncio.create_task(read(log, log.end_offset - 12, 100))
    while len(disk.in_threads) < 2:
        await asyncio.sleep(0.001)
    await log.trim(log.end_offset - 2)
    log.abandon()
    gate.set()
    # Both were open before, so what was removed meanwhile can be read, or says that it is gone.
    outcomes = await asyncio.gather(trimmed, closed, return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, memoryview | OffsetOutOfRangeError | LogClosedError), outcome
    assert disk.open_files == 0


async def test_a_page_that_the_kernel_has_dropped_is_read_in_a_thread(
    flusher: Flusher, tmp_path: Path
) -> None:
    files = RealFileSystem()
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    file = files.open(path)
    descriptor = os.open(path, os.O_RDWR)
    os.fdatasync(descriptor)
    assert bytes(file.pread_now(1 << 20, 0)) == path.read_bytes()
    for _ in range(50):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            file.pread_now(1 << 20, 0)
        except BlockingIOError:
            break
        await asyncio.sleep(0.01)
    else:
        pytest.skip("this file system keeps all in memory")
    assert file.pread(1 << 20, 0) == path.read_bytes()
    assert bytes(file.pread_now(1 << 20, 0)) == path.read_bytes()
    os.close(descriptor)
    file.close()
