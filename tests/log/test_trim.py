"""A crash at every operation of a log that is trimmed: its start never falls, and nothing above it
that was said to be safe is missing."""

from __future__ import annotations

import asyncio
import errno
import logging
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from faulty_files import FaultyFileSystem, Survival, each_once, failing
from log_batches import DIRECTORY, append, fill, headers_of, make_batch, open_log, read_all
from penstock.log import Flusher, LocalLog, LogConfig, LogWriteError, OffsetOutOfRangeError
from penstock.log.header import read_header

CONFIG = LogConfig(segment_bytes=1_200, index_interval_bytes=200, checkpoint_bytes=2_500)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")


class Crash(NamedTuple):
    """A disk as a crash at one moment leaves it, and what the log's owner knew by then."""

    moment: str
    disk: FaultyFileSystem
    safe: int
    """Everything below was acknowledged as durable."""
    trimmed_to: int
    """Everything below was acknowledged as given up."""
    trimming_to: int
    """Everything below may have been given up."""


@dataclass
class Workload:
    disk: FaultyFileSystem
    flusher: Flusher
    seeds: int
    stored: list[bytes] = field(default_factory=list)
    safe: int = 0
    trimmed_to: int = 0
    trimming_to: int = 0
    crashes: list[Crash] = field(default_factory=list)

    async def run(self, steps: int) -> None:
        chance = random.Random(steps)
        self.disk.hook = self._crash
        log = self._open()
        for step in range(steps):
            self.stored += fill(
                log, chance.randint(1, 5), first=len(self.stored), leave_in_line=True
            )
            if chance.random() < 0.5:
                await log.flushed(log.end_offset - 1)
                self.safe = log.end_offset
            if step % 3 == 2:
                everything = step % 12 == 11
                await self._trim(
                    log, log.end_offset if everything else self._somewhere(log, chance)
                )
            if step % 8 == 7:
                log.close()
                self.safe = log.end_offset
                log = self._open()
        log.close()

    def _somewhere(self, log: LocalLog, chance: random.Random) -> int:
        return chance.randint(log.start_offset, log.end_offset)

    async def _trim(self, log: LocalLog, offset: int) -> None:
        self.trimming_to = offset
        await log.trim(offset)
        self.trimmed_to = offset

    def _open(self) -> LocalLog:
        log = open_log(self.disk, self.flusher, CONFIG)
        log.register_state("owner", lambda: b"%d" % log.end_offset)
        return log

    def _crash(self, operation: str, path: Path) -> None:
        if operation == "pread":
            return
        moment = f"{len(self.crashes)}: before {operation} of {path.name}"
        known = (self.safe, self.trimmed_to, self.trimming_to)
        for survival in (Survival.ALL, Survival.NONE):
            self.crashes.append(Crash(moment, self.disk.after_crash(survival), *known))
        for seed in range(self.seeds):
            number = len(self.crashes) * 1_000 + seed
            copy = self.disk.after_crash(Survival.SOME, number)
            self.crashes.append(Crash(moment, copy, *known))


async def judge(crash: Crash, stored: list[bytes], flusher: Flusher) -> None:
    """Open what the crash left; assert that the promises hold and that the log can go on."""
    moment, disk, safe, trimmed_to, trimming_to = crash
    log = open_log(disk, flusher, CONFIG)
    start = log.start_offset
    assert trimmed_to <= start <= max(trimmed_to, trimming_to), moment
    assert log.end_offset >= max(safe, start), moment
    batches, damage = await read_all(log)
    assert all(each.base_offset >= safe for each in damage), moment
    promised = [batch for batch in stored if start < read_header(batch).next_offset <= safe]
    assert batches[: len(promised)] == promised, moment
    assert batches == [batch for batch in stored if batch in batches], moment
    if start:
        with pytest.raises(OffsetOutOfRangeError):
            await log.read(start - 1, 100)
    assert not log.recovery.lost_checkpoint, moment
    bases = sorted(int(name[:20]) for name in disk.entries(DIRECTORY) if name.endswith(".log"))
    assert all(base > start for base in bases[1:]), f"{moment}: what was trimmed is removed"
    state, replay_from = log.register_state("owner", lambda: b"%d" % log.end_offset)
    assert state in (b"%d" % replay_from, b"") or int(state) < start == replay_from, moment
    append(log, make_batch(seed=99))
    log.close()
    again = open_log(disk, flusher, CONFIG)
    assert again.recovery.scanned_bytes == 0, moment
    assert (again.start_offset, again.end_offset) == (start, log.end_offset), moment
    assert (await read_all(again))[0][: len(batches)] == batches, moment
    again.close()
    assert disk.open_files == 0, moment


async def test_a_crash_at_every_operation(disk: FaultyFileSystem, flusher: Flusher) -> None:
    workload = Workload(disk, flusher, seeds=2)
    await workload.run(steps=36)
    assert len(workload.crashes) > 800
    assert sum("unlink" in crash.moment for crash in workload.crashes) > 80
    for crash in each_once(workload.crashes):
        await judge(crash, workload.stored, flusher)


@pytest.mark.parametrize("every", [20, pytest.param(7, marks=pytest.mark.soak)])
async def test_a_crash_at_every_operation_of_recovery(
    disk: FaultyFileSystem, flusher: Flusher, every: int
) -> None:
    workload = Workload(disk, flusher, seeds=1)
    await workload.run(steps=24)
    crashes: list[Crash] = []
    for crash in workload.crashes[::every]:
        copies: list[FaultyFileSystem] = []

        def again(
            operation: str,
            path: Path,
            crash: Crash = crash,
            copies: list[FaultyFileSystem] = copies,
        ) -> None:
            if operation != "pread":
                copies.append(crash.disk.after_crash(Survival.SOME, len(copies)))

        crash.disk.hook = again
        open_log(crash.disk, flusher, CONFIG).abandon()
        moment = f"{crash.moment}, then within recovery"
        crashes += [crash._replace(moment=moment, disk=copy) for copy in copies]
    for crash in each_once(crashes):
        await judge(crash, workload.stored, flusher)


async def test_nothing_is_removed_before_the_new_start_is_durable(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    await log.flushed(log.end_offset - 1)
    disk.hook = failing(1, "rename")
    with pytest.raises(LogWriteError):
        await log.trim(headers_of(stored)[30].base_offset)
    disk.hook = None
    again = open_log(disk.after_crash(Survival.ALL), flusher, CONFIG)
    assert again.start_offset == 0
    assert await read_all(again) == (stored, [])
    again.close()
    log.close()


async def test_what_can_not_be_removed_goes_with_the_next_start(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 60)
    await log.flushed(log.end_offset - 1)
    files = len(disk.entries(DIRECTORY))

    def refuse(operation: str, path: Path) -> None:
        if operation == "unlink" and path.suffix:
            raise OSError(errno.EBUSY, "made to fail", str(path))

    disk.hook = refuse
    start = headers_of(stored)[50].base_offset
    await log.trim(start)
    disk.hook = None
    assert len(disk.entries(DIRECTORY)) >= files
    assert await read_all(log) == (stored[50:], [])
    log.close()
    again = open_log(disk, flusher, CONFIG)
    assert len(disk.entries(DIRECTORY)) < files / 2
    assert await read_all(again) == (stored[50:], [])
    again.close()


async def test_a_log_of_one_segment_that_is_given_up_leaves_an_empty_one(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    fill(log, 30)
    end = log.end_offset
    await log.trim(end)
    assert {name for name in disk.entries(DIRECTORY) if name.endswith(".log")} == {
        f"{end:020d}.log"
    }
    assert disk.open_files == 1
    log.close()
    assert disk.open_files == 0


async def test_places_below_the_start_are_forgotten(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    await read_all(log, max_bytes=1)
    start = headers_of(stored)[30].base_offset
    await log.trim(start)
    assert log._contents.look_ups.places
    assert min(log._contents.look_ups.places) >= start
    log.close()


async def test_whoever_gives_up_waiting_leaves_the_rest_to_the_next_start(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    start = headers_of(stored)[30].base_offset
    trimming = asyncio.create_task(log.trim(start))
    await asyncio.sleep(0)
    trimming.cancel()
    assert log.start_offset == start
    assert await read_all(log) == (stored[30:], [])
    log.close()
    again = open_log(disk, flusher, CONFIG)
    assert again.start_offset == start
    assert await read_all(again) == (stored[30:], [])
    again.close()
