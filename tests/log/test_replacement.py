"""Segments that are replaced: offsets stay, readers notice nothing, and a crash leaves the old ones
or the new one."""

from __future__ import annotations

import asyncio
import errno
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest

from faulty_files import FaultyFileSystem, Survival, each_once, failing
from log_batches import DIRECTORY, fill, headers_of, open_log, read, read_all
from penstock.log import Flusher, LocalLog, LogConfig, LogFailedError, LogWriteError, read_range
from penstock.log.header import BatchHeader, read_header, walk
from rewriting import leave_out, without, write_without

CONFIG = LogConfig(segment_bytes=1_200, index_interval_bytes=200, checkpoint_bytes=2_500)


def every(number: int) -> Callable[[BatchHeader], bool]:
    """Keep one batch in so many."""
    return lambda header: header.base_offset % number == 0


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")


async def filled(open_anywhere: Callable[..., LocalLog]) -> tuple[LocalLog, list[bytes], list[int]]:
    """Return a log of several segments, what is in it, and where each full one ends."""
    log = open_anywhere(CONFIG)
    stored = fill(log, 40)
    await log.flushed(log.end_offset - 1)
    assert len(log.full_segment_ends) > 3
    return log, stored, log.full_segment_ends


async def test_what_is_left_stands_where_it_stood(
    open_anywhere: Callable[..., LocalLog],
) -> None:
    log, stored, ends = await filled(open_anywhere)
    before = log.size_bytes
    left = await leave_out(log, 0, ends[1], every(3))
    kept = [batch for batch in stored if read_header(batch).base_offset >= ends[1]]
    assert await read_all(log) == (left + kept, [])
    assert log.full_segment_ends == ends[1:]
    assert log.size_bytes == sum(map(len, left + kept)) < before
    log.close()
    again = open_anywhere(CONFIG)
    assert again.recovery.scanned_bytes == 0
    assert await read_all(again) == (left + kept, [])
    assert again.size_bytes == sum(map(len, left + kept))
    again.close()


async def test_indexes_are_those_that_appending_makes(
    open_anywhere: Callable[..., LocalLog],
) -> None:
    log, _, ends = await filled(open_anywhere)
    files = log._files
    names = [
        name for name in files.entries(log.directory) if "index" in name and int(name[:20]) == 0
    ]
    before = {name: _content(log, name) for name in names}
    rewriting = await log.rewriting(0, ends[0])
    assert rewriting is not None
    for chunk in rewriting.batches(700):
        headers = list(walk(chunk))
        rewriting.write(
            chunk,
            [at for at, _ in headers],
            [header.last_offset for _, header in headers],
            list(accumulate((header.max_timestamp for _, header in headers), max)),
        )
    rewriting.seal()
    assert await log.replace(rewriting)
    assert len(before) == 2
    assert {name: _content(log, name) for name in names} == before
    log.close()


def _content(log: LocalLog, name: str) -> bytes:
    file = log._files.open(log.directory / name)
    content = file.pread(1 << 20, 0)
    file.close()
    return content


async def test_times_are_found_in_what_is_left(open_anywhere: Callable[..., LocalLog]) -> None:
    log, stored, ends = await filled(open_anywhere)
    left = await leave_out(log, 0, ends[2], every(4))
    headers = headers_of(left + [b for b in stored if read_header(b).base_offset >= ends[2]])
    for time in range(999, 1_042):
        expected = next((h.base_offset for h in headers if h.max_timestamp >= time), None)
        assert await log.find_time(time) == expected, time
    log.close()


async def test_a_replacement_is_replaced(open_anywhere: Callable[..., LocalLog]) -> None:
    log, stored, ends = await filled(open_anywhere)
    await leave_out(log, 0, ends[0], every(2))
    await leave_out(log, ends[0], ends[2], every(2))
    await leave_out(log, 0, ends[2], every(6))
    found = [h for h in headers_of((await read_all(log))[0]) if h.record_count]
    kept = [h for h in headers_of(stored) if h.base_offset >= ends[2] or h.base_offset % 6 == 0]
    assert [h.base_offset for h in found] == [h.base_offset for h in kept]
    log.close()


async def test_readers_in_another_process_see_what_is_left(
    open_anywhere: Callable[..., LocalLog],
) -> None:
    log, stored, ends = await filled(open_anywhere)
    left = await leave_out(log, 0, ends[1], every(3))
    expected = b"".join([*left, *(b for b in stored if read_header(b).base_offset >= ends[1])])
    chunks = read_range(log.directory, 0, log.end_offset, config=CONFIG, files=log._files)
    assert b"".join(chunks) == expected
    log.close()


async def test_what_is_trimmed_meanwhile_is_not_brought_back(
    open_anywhere: Callable[..., LocalLog],
) -> None:
    log, _, ends = await filled(open_anywhere)
    rewriting = await log.rewriting(0, ends[1])
    assert rewriting is not None
    write_without(rewriting, every(2))
    await log.trim(ends[0])
    assert not await log.replace(rewriting)
    assert log.full_segment_ends == ends[1:]
    names = log._files.entries(log.directory)
    assert not [name for name in names if "-" in name]
    log.close()


async def test_only_full_segments_are_written_anew(
    open_anywhere: Callable[..., LocalLog],
) -> None:
    log, _, ends = await filled(open_anywhere)
    assert await log.rewriting(0, log.end_offset) is None
    assert await log.rewriting(0, ends[0] - 1) is None
    assert await log.rewriting(1, ends[0]) is None
    assert await log.rewriting(ends[0], ends[0]) is None
    log.close()


async def test_readers_wait_for_a_moment_and_read_on(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    await log.flushed(log.end_offset - 1)
    ends = log.full_segment_ends
    rewriting = await log.rewriting(0, ends[1])
    assert rewriting is not None
    left = write_without(rewriting, every(3))
    replacing = asyncio.ensure_future(log.replace(rewriting))
    reads = [asyncio.ensure_future(read(log, offset, 1)) for offset in range(ends[1])]
    times = [asyncio.ensure_future(log.find_time(1_000 + number)) for number in range(10)]
    sizes = [asyncio.ensure_future(log.bytes_behind(offset)) for offset in range(ends[1])]
    assert await replacing
    assert await asyncio.gather(*sizes) == sorted((each.result() for each in sizes), reverse=True)
    for offset, found in enumerate(await asyncio.gather(*reads)):
        header = read_header(found)
        assert header.base_offset <= offset < header.next_offset
        assert bytes(found) in [*left, *stored]
    assert None not in await asyncio.gather(*times)
    assert log.corrupt_ranges == 0
    log.close()


class Crash(NamedTuple):
    """A disk as a crash leaves it, and what may be in the log then: the one or the other."""

    moment: str
    disk: FaultyFileSystem
    before: list[bytes]
    after: list[bytes]


@dataclass
class Workload:
    """Appends, and replaces segments; a copy of the disk before each change."""

    disk: FaultyFileSystem
    flusher: Flusher
    seeds: int
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)

    async def run(self, steps: int) -> None:
        chance = random.Random(steps)
        log = open_log(self.disk, self.flusher, CONFIG)
        for step in range(steps):
            self.after = self.after + fill(log, chance.randint(9, 16), first=step * 20)
            await log.flushed(log.end_offset - 1)
            self.before = self.after
            bounds = [0, *log.full_segment_ends]
            if len(bounds) < 2:
                continue
            start, end = sorted(chance.sample(range(len(bounds)), 2))
            self.disk.hook = self._crash
            await self._replace(log, bounds[start], bounds[end], chance.randint(2, 5))
            self.disk.hook = None
            self.before = self.after
        log.close()

    async def _replace(self, log: LocalLog, start: int, end: int, number: int) -> None:
        replaced = [b for b in self.before if start <= read_header(b).base_offset < end]
        first = self.before.index(replaced[0])
        left = without(replaced, every(number))
        self.after = [*self.before[:first], *left, *self.before[first + len(replaced) :]]
        assert await leave_out(log, start, end, every(number)) == left

    def _crash(self, operation: str, path: Path) -> None:
        if operation == "pread":
            return
        moment = f"{len(self.crashes)}: before {operation} of {path.name}"
        copies = [self.disk.after_crash(Survival.ALL), self.disk.after_crash(Survival.NONE)]
        for seed in range(self.seeds):
            number = len(self.crashes) * 1_000 + seed
            copies.append(self.disk.after_crash(Survival.SOME, number))
        for copy in copies:
            self.crashes.append(Crash(moment, copy, self.before, self.after))


async def judge(crash: Crash, flusher: Flusher) -> bool:
    """Whether the crash left the new segment; assert that it left that or the old ones, whole."""
    moment, disk, before, after = crash
    log = open_log(disk, flusher, CONFIG)
    batches, damage = await read_all(log)
    assert not damage, moment
    assert batches in (before, after), moment
    assert not [name for name in disk.entries(DIRECTORY) if "-" in name], moment
    for header in headers_of(batches):
        if header.record_count:
            found = await log.find_time(header.max_timestamp)
            assert found is not None, moment
            assert found <= header.base_offset, moment
    log.close()
    again = open_log(disk, flusher, CONFIG)
    assert again.recovery.scanned_bytes == 0, moment
    assert (await read_all(again))[0] == batches, moment
    again.close()
    assert disk.open_files == 0, moment
    return batches == after != before


@pytest.mark.usefixtures("quiet")
async def test_a_crash_at_every_operation(disk: FaultyFileSystem, flusher: Flusher) -> None:
    workload = Workload(disk, flusher, seeds=1)
    await workload.run(steps=4)
    assert len(workload.crashes) > 150
    outcomes = [await judge(crash, flusher) for crash in each_once(workload.crashes)]
    assert {True, False} == set(outcomes)


@pytest.mark.usefixtures("quiet")
async def test_a_crash_at_every_operation_of_the_recovery_from_one(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    workload = Workload(disk, flusher, seeds=1)
    await workload.run(steps=3)
    crashes: list[Crash] = []
    for moment, crashed, before, after in workload.crashes[::3]:
        copies: list[FaultyFileSystem] = []

        def crash(
            operation: str,
            path: Path,
            crashed: FaultyFileSystem = crashed,
            copies: list[FaultyFileSystem] = copies,
        ) -> None:
            if operation != "pread":
                copies.append(crashed.after_crash(Survival.SOME, len(copies)))

        crashed.hook = crash
        open_log(crashed, flusher, CONFIG).abandon()
        crashes += [Crash(f"{moment}, then recovery", copy, before, after) for copy in copies]
    for each in each_once(crashes):
        await judge(each, flusher)


async def test_a_disk_that_is_full_leaves_the_old_segments(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    await log.flushed(log.end_offset - 1)
    end = log.full_segment_ends[1]
    rewriting = await log.rewriting(0, end)
    assert rewriting is not None
    disk.hook = failing(3, "pwritev", error=errno.ENOSPC)
    with pytest.raises(OSError, match="made to fail"):
        write_without(rewriting, every(2))
    rewriting.discard()
    assert not [name for name in disk.entries(DIRECTORY) if "-" in name]
    again = await log.rewriting(0, end)
    assert again is not None
    write_without(again, every(2))
    disk.hook = failing(1, "rename")
    with pytest.raises(LogWriteError):
        await log.replace(again)
    assert await read_all(log) == (stored, [])
    assert log.failure is None
    log.close()


@pytest.mark.usefixtures("quiet")
async def test_a_disk_that_fails_in_the_middle_closes_the_log_until_it_is_opened_anew(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 40)
    await log.flushed(log.end_offset - 1)
    end = log.full_segment_ends[2]
    rewriting = await log.rewriting(0, end)
    assert rewriting is not None
    left = write_without(rewriting, every(2))
    disk.hook = failing(3, "unlink")
    with pytest.raises(LogWriteError):
        await log.replace(rewriting)
    assert isinstance(log.failure, LogFailedError)
    log.abandon()
    await log.released()
    again = open_log(disk, flusher, CONFIG)
    rest = [batch for batch in stored if read_header(batch).base_offset >= end]
    assert await read_all(again) == (left + rest, [])
    again.close()


async def test_files_that_are_short_for_a_while_fail_nothing(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    fill(log, 40)
    await log.flushed(log.end_offset - 1)
    rewriting = await log.rewriting(0, log.full_segment_ends[1])
    assert rewriting is not None
    write_without(rewriting, every(2))
    disk.hook = failing(2, "sync_directory", error=errno.EMFILE)
    assert await log.replace(rewriting)
    assert log.failure is None
    log.close()
