"""Group commit: how many flushes there are, who waits for which, and what a failed one means."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival, failing
from log_batches import SMALL, append, fill, make_batch, open_log, read_all
from patience import PATIENCE_SECONDS
from penstock.log import (
    Flusher,
    LogClosedError,
    LogConfig,
    LogFailedError,
    commit,
    reading,
)

LARGE = LogConfig()


class Gate:
    """Counts flushes of segments, and holds them up while it is shut."""

    def __init__(self, disk: FaultyFileSystem) -> None:
        disk.hook = self._pass
        self.flushes = 0
        self._open = threading.Event()
        self._open.set()
        self.reached = threading.Event()

    def shut(self) -> None:
        self._open.clear()
        self.reached.clear()

    def open(self) -> None:
        self._open.set()

    async def held_up(self) -> None:
        """Return when a flush waits at the gate."""
        assert await asyncio.to_thread(self.reached.wait, PATIENCE_SECONDS), "no flush came"

    def _pass(self, operation: str, path: Path) -> None:
        if operation == "fdatasync" and path.suffix == ".log":
            self.flushes += 1
            self.reached.set()
            assert self._open.wait(PATIENCE_SECONDS)


async def test_a_thousand_appends_share_two_flushes(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    gate = Gate(disk)
    gate.shut()
    waiting = [log.flushed(append(log, make_batch()))]
    await gate.held_up()
    waiting += [log.flushed(append(log, make_batch())) for _ in range(999)]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(*waiting)
    assert gate.flushes == 2
    assert log.flushed_offset == log.end_offset
    log.close()


async def test_appends_of_one_turn_of_the_loop_share_one_flush(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    gate = Gate(disk)
    await asyncio.gather(*(log.flushed(append(log, make_batch())) for _ in range(100)))
    assert gate.flushes == 1
    log.close()


async def test_appends_of_turns_that_follow_one_another_share_one_flush(
    disk: FaultyFileSystem, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_COLLECTED_SECONDS", PATIENCE_SECONDS)
    log = open_log(disk, flusher, LARGE)
    gate = Gate(disk)
    waiting = []
    for _ in range(10):
        waiting += [log.flushed(append(log, make_batch())) for _ in range(2)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert gate.flushes == 1
    log.close()


async def test_appends_without_end_are_flushed_meanwhile(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while log.flushed_offset == 0:
            fill(log, 2, leave_in_line=True)
            log.flush_soon(at_once=True)
            await asyncio.sleep(0)
    log.close()


async def test_who_came_before_the_flush_does_not_wait_for_the_next(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    gate = Gate(disk)
    early = append(log, make_batch())
    gate.shut()
    first = log.flushed(early)
    await gate.held_up()
    late = append(log, make_batch())
    joins_first = log.flushed(early)
    waits_longer = log.flushed(late)
    await asyncio.sleep(0)
    assert log.flushed_offset == 0
    gate.open()
    await asyncio.gather(first, joins_first)
    assert log.flushed_offset > early
    await waits_longer
    assert log.flushed_offset > late
    log.close()


async def test_the_next_flush_has_begun_when_readers_hear_of_the_last(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    await log.flushed(append(log, make_batch()))
    gate = Gate(disk)
    begun: list[bool] = []

    def advanced() -> None:
        if not begun:
            begun.append(gate.reached.wait(PATIENCE_SECONDS))

    gate.shut()
    first = log.flushed(append(log, make_batch()))
    await gate.held_up()
    second = log.flushed(append(log, make_batch()))
    await asyncio.sleep(0.01)  # What came is in line, and the loop has nothing to do.
    log.watch(advanced, lambda _: None)
    gate.reached.clear()
    gate.open()
    await asyncio.gather(first, second)
    assert begun == [True]
    log.close()


async def test_an_appender_that_gives_up_harms_nobody(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LARGE)
    gate = Gate(disk)
    gate.shut()

    async def durable(offset: int) -> None:
        await log.flushed(offset)

    tasks = [asyncio.create_task(durable(append(log, make_batch()))) for _ in range(3)]
    await gate.held_up()
    tasks[1].cancel()
    gate.open()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [
        type(None),
        asyncio.CancelledError,
        type(None),
    ]
    log.close()


@pytest.mark.parametrize("operation", ["fdatasync", "sync_directory"])
async def test_after_a_failed_flush_the_log_takes_no_more(
    disk: FaultyFileSystem, flusher: Flusher, operation: str
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 8)
    await log.flushed(log.end_offset - 1)
    safe = log.flushed_offset
    stored += fill(log, 10, first=8)  # This rolls, so that the flush writes a checkpoint too.
    disk.hook = failing(1, operation)
    with pytest.raises(LogFailedError, match="made to fail"):
        await log.flushed(log.end_offset - 1)
    assert log.flushed_offset == safe
    with pytest.raises(LogFailedError):
        append(log, make_batch())
    with pytest.raises(LogFailedError):
        await log.flushed(log.end_offset - 1)
    await log.flushed(0)
    assert await read_all(log) == (stored, [])
    log.close()
    assert log.flushed_offset == safe


async def test_short_writes_are_carried_on(disk: FaultyFileSystem, flusher: Flusher) -> None:
    disk.write_limit = 7
    log = open_log(disk, flusher)
    stored = fill(log, 40)
    assert await read_all(log) == (stored, [])
    log.close()
    assert await read_all(open_log(disk, flusher)) == (stored, [])


async def test_an_owner_whose_snapshot_fails_leaves_nobody_waiting(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig(checkpoint_bytes=1))

    def snapshot() -> bytes:
        raise ZeroDivisionError

    log.register_state("owner", snapshot)
    with pytest.raises(LogFailedError):
        await log.flushed(append(log, make_batch()))
    log.abandon()


async def test_whoever_waits_when_the_log_is_abandoned_is_told(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    waiting = log.flushed(append(log, make_batch()))
    log.abandon()
    with pytest.raises(LogClosedError):
        await waiting
    with pytest.raises(LogClosedError):
        await log.flushed(0)
    assert disk.open_files == 0


async def test_checkpoints_are_taken_as_the_log_grows(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig(checkpoint_bytes=SMALL.checkpoint_bytes))
    log.register_state("owner", lambda: b"%d" % log.end_offset)
    written = 0
    for number in range(100):
        written += len(fill(log, 1, first=number)[0])
        await log.flushed(log.end_offset - 1)
    crashed = open_log(disk.after_crash(Survival.ALL), flusher)
    largest = 61 + 200
    assert written > 3 * SMALL.checkpoint_bytes
    assert crashed.recovery.scanned_bytes <= SMALL.checkpoint_bytes + largest
    state, replay_from = crashed.register_state("owner", lambda: b"")
    assert state == b"%d" % replay_from
    assert 0 < replay_from < crashed.end_offset == log.end_offset
    log.close()


async def test_files_are_not_hoarded(
    disk: FaultyFileSystem, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READ_FILES", 3)
    log = open_log(disk, flusher)
    stored = fill(log, 100)
    assert log.segment_count > 5
    await log.flushed(log.end_offset - 1)
    assert await read_all(log) == (stored, [])
    assert disk.open_files == 1 + 3
    log.close()
    assert disk.open_files == 0
