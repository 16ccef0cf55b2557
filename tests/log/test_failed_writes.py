"""A write that fails is taken back and refused, and the log goes on; only a flush may not fail."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival, failing
from log_batches import DIRECTORY, SMALL, append, fill, make_batch, open_log, read_all
from penstock.log import Flusher, LocalLog, LogConfig, LogFailedError, LogWriteError
from penstock.log.interface import Outcome
from penstock.session import ended

FIRST = DIRECTORY / f"{0:020d}.log"
ERRORS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE]


def always(*operations: str, error: int = errno.ENOSPC) -> Callable[[str, Path], None]:
    def hook(operation: str, path: Path) -> None:
        if operation in operations:
            raise OSError(error, "made to fail", str(path))

    return hook


async def outcomes(waiting: list[Outcome]) -> list[type[BaseException] | None]:
    await asyncio.gather(*map(ended, waiting))
    return [type(error) if (error := each.exception()) else None for each in waiting]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_failed_write_is_refused_and_the_next_one_succeeds(
    disk: FaultyFileSystem, flusher: Flusher, error: int
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 10)
    end_offset, size = log.end_offset, log.size_bytes
    disk.hook = failing(1, "pwritev", error=error)
    with pytest.raises(LogWriteError, match="made to fail") as raised:
        await log.flushed(append(log, make_batch()))
    assert str(DIRECTORY) not in str(raised.value), "a client hears it"
    assert (log.end_offset, log.size_bytes, log.failed_writes) == (end_offset, size, 1)
    assert await read_all(log) == (stored, [])
    stored += fill(log, 20, first=10)
    await log.flushed(log.end_offset - 1)
    assert await read_all(log) == (stored, [])
    again = open_log(disk.after_crash(Survival.NONE), flusher)
    assert await read_all(again) == (stored, [])
    again.close()
    log.close()
    assert log.rebuilt_indexes == 0


@pytest.mark.parametrize("half", [False, True])
async def test_all_that_stands_in_line_behind_a_failed_write_fails_with_it(
    disk: FaultyFileSystem, flusher: Flusher, half: bool
) -> None:
    log = open_log(disk, flusher, LogConfig())
    stored = fill(log, 3)
    end_offset = log.end_offset
    disk.write_limit = 100 if half else None
    disk.hook = failing(2 if half else 1, "pwritev")
    waiting = []
    for _ in range(10):
        offset = append(log, make_batch())
        waiting += [log.written(offset), log.flushed(offset)]
    assert await outcomes(waiting) == [LogWriteError] * 20
    assert log.end_offset == end_offset
    assert len(disk.content(FIRST).live) == sum(map(len, stored)), "cut back to the last good byte"
    assert await read_all(log) == (stored, [])
    log.close()
    assert open_log(disk, flusher).recovery.truncated_bytes == 0


async def test_what_was_written_before_is_flushed_all_the_same(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    written = append(log, make_batch())
    await log.written(written)
    disk.hook = failing(1, "pwritev")
    early, late = log.flushed(written), log.flushed(append(log, make_batch()))
    assert await outcomes([early, late]) == [None, LogWriteError]
    assert log.flushed_offset == log.end_offset == 3
    log.close()


async def test_a_file_that_can_not_be_cut_back_is_cut_before_the_next_write(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 3)
    disk.write_limit, disk.hook = 40, failing(2, "pwritev")

    def refuse(operation: str, path: Path, first: Callable[[str, Path], None] = disk.hook) -> None:
        first(operation, path)
        always("truncate")(operation, path)

    disk.hook = refuse
    with pytest.raises(LogWriteError):
        await log.written(append(log, make_batch()))
    torn = len(disk.content(FIRST).live)
    assert torn == sum(map(len, stored)) + 40
    crashed = open_log(disk.after_crash(Survival.ALL), flusher)
    assert crashed.recovery.truncated_bytes == 40
    crashed.close()
    disk.write_limit = disk.hook = None
    stored.append(b"".join(batch := make_batch(size=1)))
    append(log, batch)
    await log.flushed(log.end_offset - 1)
    stored[-1] = b"".join(batch)
    assert await read_all(log) == (stored, [])
    log.close()
    again = open_log(disk, flusher)
    assert again.recovery.truncated_bytes == 0
    assert await read_all(again) == (stored, [])
    again.close()


@pytest.mark.parametrize("error", ERRORS)
async def test_a_segment_that_can_not_be_made_is_tried_again(
    disk: FaultyFileSystem, flusher: Flusher, error: int
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 5)
    disk.hook = always("create", error=error)
    for _ in range(3):
        large = append(log, make_batch(size=SMALL.segment_bytes))
        with pytest.raises(LogWriteError):
            await log.written(large)
    segments = log.segment_count
    # What still fits goes on, and the next full segment has no trace of the ones that failed.
    stored += fill(log, 1, first=5)
    disk.hook = None
    stored += fill(log, 40, first=6)
    assert log.segment_count > segments
    await log.flushed(log.end_offset - 1)
    assert await read_all(log) == (stored, [])
    log.close()
    again = open_log(disk, flusher)
    assert again.recovery.truncated_bytes == 0
    assert await read_all(again) == (stored, [])
    again.close()


async def test_a_log_that_can_not_be_opened_for_writing_yet_is_later(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 5)
    log.close()
    log = open_log(disk, flusher)
    disk.hook = always("open", error=errno.EMFILE)
    with pytest.raises(LogWriteError):
        await log.flushed(append(log, make_batch()))
    disk.hook = None
    stored += fill(log, 5, first=5)
    await log.flushed(log.end_offset - 1)
    assert await read_all(log) == (stored, [])
    log.close()


async def test_a_name_that_can_not_be_flushed_for_want_of_files_is_flushed_next_time(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 2)
    disk.hook = failing(1, "sync_directory", error=errno.EMFILE)
    with pytest.raises(LogWriteError):
        await log.flushed(log.end_offset - 1)
    assert log.flushed_offset == 0
    await log.flushed(log.end_offset - 1)
    again = open_log(disk.after_crash(Survival.NONE), flusher)
    assert await read_all(again) == (stored, [])
    again.close()
    log.close()


@pytest.mark.parametrize("operation", ["create", "rename", "pwritev", "fdatasync"])
async def test_a_checkpoint_or_an_index_that_can_not_be_saved_fails_nobody(
    disk: FaultyFileSystem, flusher: Flusher, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher)
    log.register_state("owner", lambda: b"%d" % log.end_offset)

    def hook(found: str, path: Path) -> None:
        if found == operation and path.suffix != ".log":
            raise OSError(errno.ENOSPC, "made to fail", str(path))

    disk.hook = hook
    stored = []
    with caplog.at_level(logging.WARNING):
        for number in range(60):
            stored += fill(log, 1, first=number)
            await log.flushed(log.end_offset - 1)
    assert "no checkpoint" in caplog.text
    assert await read_all(log) == (stored, [])
    assert log.failed_writes == 0
    crashed = open_log(disk.after_crash(Survival.NONE), flusher)
    assert await read_all(crashed) == (stored, [])
    assert [await crashed.find_time(1_000 + number) for number in range(60)] == [
        await log.find_time(1_000 + number) for number in range(60)
    ]
    crashed.close()
    disk.hook = None
    stored += fill(log, 60, first=60)
    await log.finish()
    again = open_log(disk.after_crash(Survival.NONE), flusher)
    assert again.recovery.scanned_bytes == 0
    assert again.register_state("owner", lambda: b"") == (b"%d" % log.end_offset, log.end_offset)
    assert await read_all(again) == (stored, [])
    again.close()
    log.close()


async def test_a_trim_that_is_not_durable_yet_is_refused_and_may_be_asked_again(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 20)
    await log.flushed(log.end_offset - 1)
    disk.hook = always("rename", "create")
    for start in (10, log.end_offset):
        with pytest.raises(LogWriteError):
            await log.trim(start)
    disk.hook = None
    stored += fill(log, 3, first=20)
    await log.trim(log.end_offset - 1)
    log.close()
    again = open_log(disk, flusher)
    assert again.start_offset == log.end_offset - 1
    assert (await read_all(again))[0] == stored[-1:]
    again.close()


async def test_one_log_line_tells_of_many_failed_writes_and_one_of_their_end(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher)
    fill(log, 1)
    disk.hook = always("pwritev")
    for _ in range(20):
        with pytest.raises(LogWriteError):
            await log.written(append(log, make_batch()))
    disk.hook = None
    for _ in range(3):
        await log.written(append(log, make_batch()))
    assert caplog.text.count("a write failed") == 1
    assert caplog.text.count("writes succeed again") == 1
    assert log.failed_writes == 20
    log.close()


async def test_a_file_that_takes_nothing_refuses_its_batch(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    disk.write_limit = 0
    with pytest.raises(LogWriteError, match="took no bytes"):
        await log.written(append(log, make_batch()))
    log.close()


async def test_owners_hear_where_the_log_ends_after_a_failed_write(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    cuts: list[int] = []
    moves: list[tuple[int, int]] = []
    log.watch(lambda: moves.append((log.written_offset, log.flushed_offset)), cuts.append)
    append(log, make_batch(count=5))
    await log.flushed(4)
    disk.hook = failing(1, "pwritev")
    append(log, make_batch())
    refused = log.flushed(append(log, make_batch()))
    assert await outcomes([refused]) == [LogWriteError]
    assert cuts == [5]
    assert moves[-1] == (5, 5)
    log.close()


async def test_a_failed_flush_stays_fatal(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    disk.hook = failing(1, "fdatasync")
    with pytest.raises(LogFailedError):
        await log.flushed(append(log, make_batch()))
    with pytest.raises(LogFailedError):
        append(log, make_batch())
    assert isinstance(log.failure, LogFailedError)
    log.close()


async def test_a_slow_disk_holds_up_no_append(disk: FaultyFileSystem, flusher: Flusher) -> None:
    """Every operation of the writing half is made by a thread: segments, indexes and trims too."""
    loop_thread: list[str] = []
    threads = asyncio.get_running_loop()
    log = LocalLog.open(DIRECTORY, SMALL, disk, flusher)

    def hook(operation: str, path: Path) -> None:
        try:
            if asyncio.get_running_loop() is threads and operation != "pread":
                loop_thread.append(f"{operation} {path.name}")
        except RuntimeError:
            pass  # A thread has no loop.

    disk.hook = hook
    for number in range(80):
        fill(log, 1, first=number, leave_in_line=True)
        if number % 3 == 0:
            await log.flushed(log.end_offset - 1)
        if number % 20 == 19:
            await log.trim(log.start_offset + (log.flushed_offset - log.start_offset) // 2)
    await log.trim(log.end_offset)
    await log.finish()
    assert log.segment_count >= 1
    assert loop_thread == []
    disk.hook = None
    log.close()
