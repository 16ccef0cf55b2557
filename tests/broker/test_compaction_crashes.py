"""A crash at every operation of compaction leaves the last value of each key, and nothing new."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from faulty_files import FaultyFileSystem, Survival, each_once
from log_batches import DIRECTORY, append, open_log, read_all, write_now
from penstock.broker.compaction.cleaner import Cleaner, Job, Throttle
from penstock.broker.transactions.aborted_range import AbortedRange
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.records import decode
from stored_batches import TIME, Record, iggy_batch, iggy_body, kafka_batch

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=300, checkpoint_bytes=4_000)

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")


class Crash(NamedTuple):
    """A disk as a crash leaves it, and what was in the log before the pass that it ended."""

    moment: str
    disk: FaultyFileSystem
    before: list[tuple[int, bytes, bytes | None]]


def fill(log: LocalLog, chance: random.Random, batches: int) -> None:
    for _ in range(batches):
        records = [
            Record(chance.randbytes(20), b"key %d" % chance.randrange(6))
            for _ in range(chance.randint(1, 4))
        ]
        batch = kafka_batch(records)
        if chance.random() < 0.3:
            batch = iggy_batch(iggy_body(records), count=len(records))
        append(log, [bytearray(batch)])
    write_now(log)


async def content(log: LocalLog) -> list[tuple[int, bytes, bytes | None]]:
    batches, damage = await read_all(log)
    assert not damage
    columns = decode(b"".join(batches))
    return [
        (int(columns.offsets[row]), columns.key(row) or b"", columns.value(row))
        for row in range(len(columns))
    ]


async def compact(log: LocalLog) -> None:
    """Do what the broker does, but for the thread."""
    bounds = [0, *log.full_segment_ends]
    runs = [(start, end) for start, end in zip(bounds[::2], bounds[2::2], strict=False)]
    rewritings = [await log.rewriting(*run) for run in runs]
    found = [each for each in rewritings if each is not None]
    job = Job(found, 0, TIME // 1000, 0, False, (), AbortedRange((), found[-1].end))
    cleaner = Cleaner(job, Throttle(1 << 40))
    cleaner.map_keys()
    for rewriting in found:
        if cleaner.clean(rewriting):
            assert await log.replace(rewriting)
        rewriting.discard()


async def judge(crash: Crash, flusher: Flusher) -> int:
    log = open_log(crash.disk, flusher, CONFIG)
    after = await content(log)
    assert set(after) <= set(crash.before), crash.moment
    assert [each[0] for each in after] == sorted(each[0] for each in after), crash.moment
    last = {key: value for _, key, value in crash.before}
    assert {key: value for _, key, value in after} == last, crash.moment
    assert not [name for name in crash.disk.entries(DIRECTORY) if "-" in name], crash.moment
    log.close()
    again = open_log(crash.disk, flusher, CONFIG)
    assert again.recovery.scanned_bytes == 0, crash.moment
    assert await content(again) == after, crash.moment
    again.close()
    return len(after)


async def test_a_crash_at_every_operation(disk: FaultyFileSystem, flusher: Flusher) -> None:
    chance = random.Random(7)
    log = open_log(disk, flusher, CONFIG)
    crashes: list[Crash] = []
    for _ in range(2):
        fill(log, chance, 24)
        await log.flushed(log.end_offset - 1)
        before = await content(log)

        def crash(operation: str, path: Path, before: list = before) -> None:
            if operation == "pread":
                return
            moment = f"{len(crashes)}: before {operation} of {path.name}"
            for survival in Survival:
                copy = disk.after_crash(survival, len(crashes))
                crashes.append(Crash(moment, copy, before))

        disk.hook = crash
        await compact(log)
        disk.hook = None
        assert len(await content(log)) < len(before)
    log.close()
    assert len(crashes) > 150
    left = {await judge(each, flusher) for each in each_once(crashes)}
    assert len(left) > 3
