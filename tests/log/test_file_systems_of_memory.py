"""Where no device is waited for, the event loop writes and flushes what is small by itself."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, failing
from log_batches import append, make_batch, open_log, read_all
from patience import PATIENCE_SECONDS, until
from penstock.limits import WRITE_AT_ONCE_BYTES
from penstock.log import Flusher, LocalLog, LogConfig, LogFailedError, LogWriteError, RealFileSystem
from penstock.log.interface import Outcome

LARGE = LogConfig()
TWO_BATCHES = LogConfig(segment_bytes=2_000)


class Calls:
    """Notes which threads write to segments and flush them."""

    def __init__(self, disk: FaultyFileSystem) -> None:
        self.threads: list[int] = []
        self.held_up = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        disk.hook = self._note

    def shut(self) -> None:
        """Hold the other threads up from now on, until `go_on` is set."""
        self.go_on.clear()

    @property
    def by_the_loop(self) -> bool:
        calls, self.threads = self.threads, []
        assert len(calls) == 2, "a write and a flush"
        return calls == [threading.get_ident()] * 2

    def _note(self, operation: str, path: Path) -> None:
        if operation in ("pwritev", "fdatasync") and path.suffix == ".log":
            self.threads.append(threading.get_ident())
            if threading.current_thread() is not threading.main_thread():
                self.held_up.set()
                assert self.go_on.wait(PATIENCE_SECONDS)


@pytest.fixture
def memory(disk: FaultyFileSystem) -> FaultyFileSystem:
    disk.is_in_memory = True
    return disk


async def begun(disk: FaultyFileSystem, flusher: Flusher, config: LogConfig = LARGE) -> LocalLog:
    """Return a log whose first checkpoint and whose name are safe, which threads see to."""
    log = open_log(disk, flusher, config)
    await log.flushed(append(log, make_batch()))
    return log


@pytest.mark.parametrize("waits_for", [LocalLog.flushed, LocalLog.written])
async def test_the_loop_writes_and_flushes_what_is_small(
    memory: FaultyFileSystem, flusher: Flusher, waits_for: Callable[[LocalLog, int], Outcome]
) -> None:
    log = await begun(memory, flusher)
    calls = Calls(memory)
    for _ in range(3):
        for _ in range(10):
            offset = append(log, make_batch())
        assert callable(waits_for)
        await waits_for(log, offset)
        assert calls.by_the_loop, "all of a turn in one call"
        assert log.flushed_offset == log.end_offset
    assert len((await read_all(log))[0]) == 31
    log.close()


async def test_a_disk_is_left_to_threads(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = await begun(disk, flusher)
    calls = Calls(disk)
    await log.flushed(append(log, make_batch()))
    assert not calls.by_the_loop
    log.close()


async def test_what_is_large_is_left_to_threads(memory: FaultyFileSystem, flusher: Flusher) -> None:
    log = await begun(memory, flusher)
    calls = Calls(memory)
    half = make_batch(size=WRITE_AT_ONCE_BYTES // 2)
    append(log, list(half))
    await log.flushed(append(log, half))
    assert not calls.by_the_loop
    await log.flushed(append(log, make_batch()))
    assert calls.by_the_loop
    log.close()


async def test_a_new_segment_is_left_to_threads(memory: FaultyFileSystem, flusher: Flusher) -> None:
    log = await begun(memory, flusher, TWO_BATCHES)
    calls = Calls(memory)
    await log.flushed(append(log, make_batch(size=1_500)))
    assert calls.by_the_loop
    await log.flushed(append(log, make_batch(size=1_500)))
    assert threading.get_ident() not in calls.threads
    log.close()


async def test_the_loop_does_not_write_beside_a_thread(
    memory: FaultyFileSystem, flusher: Flusher
) -> None:
    log = await begun(memory, flusher)
    calls = Calls(memory)
    calls.shut()
    large = log.flushed(append(log, make_batch(size=WRITE_AT_ONCE_BYTES)))
    await until(calls.held_up.is_set)
    small = log.flushed(append(log, make_batch()))
    written = log.written(append(log, make_batch()))
    await until(lambda: not log._commit._has_turn)
    assert threading.get_ident() not in calls.threads
    calls.go_on.set()
    await large
    await small
    await written
    assert log.flushed_offset == log.end_offset
    log.close()


async def test_a_failed_write_is_taken_back(memory: FaultyFileSystem, flusher: Flusher) -> None:
    log = await begun(memory, flusher)
    memory.hook = failing(1, "pwritev", error=errno.ENOSPC)
    refused = append(log, make_batch())
    with pytest.raises(LogWriteError):
        await log.flushed(refused)
    calls = Calls(memory)
    assert append(log, make_batch()) == refused
    await log.flushed(refused)
    assert calls.by_the_loop
    assert len((await read_all(log))[0]) == 2
    log.close()


async def test_a_failed_flush_is_for_good(memory: FaultyFileSystem, flusher: Flusher) -> None:
    log = await begun(memory, flusher)
    memory.hook = failing(1, "fdatasync")
    with pytest.raises(LogFailedError):
        await log.flushed(append(log, make_batch()))
    with pytest.raises(LogFailedError):
        append(log, make_batch())
    log.close()


def test_the_system_says_which_file_systems_are_of_memory() -> None:
    memory = Path("/dev/shm")
    if not memory.is_mount():
        pytest.skip("there is no file system of memory here")
    files = RealFileSystem()
    path = memory / f"penstock-{threading.get_native_id()}"
    file = files.open(path, write=True, create=True)
    try:
        assert file.is_in_memory
    finally:
        file.close()
        path.unlink()
    with closing(files.open(Path("/proc/version"))) as file:
        assert not file.is_in_memory
