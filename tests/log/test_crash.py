"""A crash at every operation of a workload: nothing that was said to be safe is missing."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from faulty_files import FaultyFile, FaultyFileSystem, Survival, each_once
from log_batches import DIRECTORY, append, fill, headers_of, make_batch, open_log, read_all
from penstock.limits import CHECKPOINT_STATE_APART_BYTES
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.header import read_header

CONFIG = LogConfig(segment_bytes=1_200, index_interval_bytes=200, checkpoint_bytes=900)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")


def large(offset: int) -> bytes:
    """A state that a checkpoint has in a file of its own, and that changes now and then."""
    return b"%d" % (offset // 10) + bytes(CHECKPOINT_STATE_APART_BYTES)


@dataclass
class Workload:
    """Appends, flushes, rolls, checkpoints and restarts; a copy of the disk before each change."""

    disk: FaultyFileSystem
    flusher: Flusher
    seeds: int
    """How many of the possible outcomes of a power cut are tried at each moment."""

    stored: list[bytes] = field(default_factory=list)
    safe: int = 0
    """Everything below this offset was acknowledged."""

    crashes: list[tuple[str, FaultyFileSystem, int]] = field(default_factory=list)

    async def run(self, steps: int) -> None:
        chance = random.Random(steps)
        self.disk.hook = self._crash
        log = self._open()
        for step in range(steps):
            self.stored += fill(
                log, chance.randint(1, 3), first=len(self.stored), leave_in_line=True
            )
            if chance.random() < 0.7:
                await log.flushed(log.end_offset - 1)
                self.safe = log.end_offset
            if step % 9 == 8:
                log.close()
                self.safe = log.end_offset
                log = self._open()
        log.close()

    def _open(self) -> LocalLog:
        log = open_log(self.disk, self.flusher, CONFIG)
        log.register_state("owner", lambda: b"%d" % log.end_offset)
        log.register_state("large owner", lambda: large(log.end_offset))
        return log

    def _crash(self, operation: str, path: Path) -> None:
        if operation == "pread":
            return
        moment = f"{len(self.crashes)}: before {operation} of {path.name}"
        for survival in (Survival.ALL, Survival.NONE):
            self.crashes.append((moment, self.disk.after_crash(survival), self.safe))
        for seed in range(self.seeds):
            number = len(self.crashes) * 1_000 + seed
            copy = self.disk.after_crash(Survival.SOME, number)
            self.crashes.append((moment, copy, self.safe))


async def judge(
    moment: str, disk: FaultyFileSystem, safe: int, stored: list[bytes], flusher: Flusher
) -> None:
    """Open what the crash left; assert that the promises hold and that the log can go on."""
    log = open_log(disk, flusher, CONFIG)
    batches, damage = await read_all(log)
    promised = [batch for batch in stored if read_header(batch).next_offset <= safe]
    assert batches[: len(promised)] == promised, moment
    assert batches == [batch for batch in stored if batch in batches], moment
    assert all(each.base_offset >= safe for each in damage), moment
    assert log.end_offset >= safe, moment
    assert not log.recovery.lost_checkpoint, moment
    state, replay_from = log.register_state("owner", lambda: b"%d" % log.end_offset)
    assert state == (b"%d" % replay_from if replay_from else b""), moment
    state, replay_from = log.register_state("large owner", lambda: large(log.end_offset))
    assert state == (large(replay_from) if replay_from else b""), moment
    append(log, make_batch(seed=99))
    log.close()
    again = open_log(disk, flusher, CONFIG)
    assert again.recovery.scanned_bytes == 0, moment
    assert (await read_all(again))[0][: len(batches)] == batches, moment
    assert again.end_offset == log.end_offset, moment
    again.close()
    assert disk.open_files == 0, moment


async def judge_all(workload: Workload) -> None:
    for crash in each_once(workload.crashes):
        await judge(*crash, workload.stored, workload.flusher)


async def test_a_crash_at_every_operation(disk: FaultyFileSystem, flusher: Flusher) -> None:
    workload = Workload(disk, flusher, seeds=2)
    await workload.run(steps=30)
    assert len(workload.crashes) > 500
    await judge_all(workload)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_ten_thousand_crashes(disk: FaultyFileSystem, flusher: Flusher) -> None:
    workload = Workload(disk, flusher, seeds=40)
    await workload.run(steps=60)
    assert len(workload.crashes) > 10_000
    await judge_all(workload)


async def test_a_crash_at_every_operation_of_recovery(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    workload = Workload(disk, flusher, seeds=1)
    await workload.run(steps=12)
    again: list[tuple[str, FaultyFileSystem, int]] = []
    for moment, crashed, safe in workload.crashes[::7]:
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
        again += [(f"{moment}, then within recovery", copy, safe) for copy in copies]
    for crash_again in each_once(again):
        await judge(*crash_again, workload.stored, flusher)


async def test_what_was_only_written_is_lost_with_the_power(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    # Unless this loss is seen, the tests above prove nothing.
    log = open_log(disk, flusher)
    safe = fill(log, 5)
    await log.flushed(log.end_offset - 1)
    written = fill(log, 5, first=5)
    assert (await read_all(open_log(disk.after_crash(Survival.ALL), flusher)))[0] == safe + written
    assert (await read_all(open_log(disk.after_crash(Survival.NONE), flusher)))[0] == safe
    log.close()


async def test_a_disk_that_lies_about_flushes_is_found_out(
    disk: FaultyFileSystem, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaultyFile, "fdatasync", lambda self: None)
    workload = Workload(disk, flusher, seeds=0)
    await workload.run(steps=5)
    with pytest.raises(AssertionError, match="before"):
        await judge_all(workload)


async def test_a_new_logs_own_name_is_durable_once_it_is_flushed(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 1)
    await log.flushed(0)
    again = open_log(disk.after_crash(Survival.NONE), flusher)
    assert await read_all(again) == (stored, [])
    assert headers_of(stored)[0].base_offset == 0
    assert DIRECTORY.name in str(again.directory)
    log.close()


async def test_what_recovery_calls_safe_survives_the_next_power_cut(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    killed = open_log(disk, flusher, CONFIG)
    stored = fill(killed, 20)
    recovered = open_log(disk, flusher, CONFIG)
    assert recovered.flushed_offset == recovered.end_offset == killed.end_offset
    again = open_log(disk.after_crash(Survival.NONE), flusher, CONFIG)
    assert await read_all(again) == (stored, [])
    killed.abandon()


async def test_a_clean_stop_is_one_also_after_a_power_cut(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 20)
    await log.flushed(log.end_offset - 1)
    stored += fill(log, 2, first=20)
    log.close()
    again = open_log(disk.after_crash(Survival.NONE), flusher, CONFIG)
    assert again.recovery.scanned_bytes == 0
    assert await read_all(again) == (stored, [])
