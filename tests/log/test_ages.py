"""Goal: what retention goes by is right or on the safe side: sizes and latest times of segments."""

from __future__ import annotations

import asyncio
import logging

import pytest

from faulty_files import FaultyFileSystem, Survival
from log_batches import DIRECTORY, append, make_batch, open_log, read_all, write_now
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.ages import oldest_segment
from penstock.log.interface import OldestSegment, StoredSegment

CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=100)
SIZE = 439
"""Of a body of which two batches fill a segment."""
TIMES = (7, 3, 5, 9, 1)


def filled(disk: FaultyFileSystem, flusher: Flusher, config: LogConfig = CONFIG) -> LocalLog:
    log = open_log(disk, flusher, config)
    for time_ms in TIMES:
        append(log, make_batch(1, SIZE, time_ms))
    write_now(log)
    return log


async def segments_of(log: LocalLog) -> list[StoredSegment]:
    return [each async for each in log.stored_segments()]


ALL = [
    StoredSegment(0, 2, 1_000, 7, False),
    StoredSegment(2, 4, 1_000, 9, False),
    StoredSegment(4, 5, 500, 1, True),
]


async def test_each_segment_has_its_latest_time_also_after_a_restart(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = filled(disk, flusher)
    assert await segments_of(log) == ALL
    append(log, make_batch(1, 50, 20))
    write_now(log)
    assert (await segments_of(log))[-1] == StoredSegment(4, 6, 611, 20, True)
    log.close()
    assert oldest_segment(disk, DIRECTORY) == OldestSegment(2_611, ALL[0])
    again = open_log(disk, flusher, CONFIG)
    assert (await segments_of(again))[:2] == ALL[:2]
    await again.trim(3)
    assert (await segments_of(again))[0] == ALL[1]
    again.close()
    assert oldest_segment(disk, DIRECTORY) == OldestSegment(1_611, ALL[1])


async def test_a_log_that_holds_nothing_has_no_segment(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = filled(disk, flusher)
    await log.trim(log.end_offset)
    assert await segments_of(log) == []
    log.close()
    assert oldest_segment(disk, DIRECTORY) == OldestSegment(0, None)


async def test_without_times_the_last_write_counts(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    disk.now_ms = 77
    log = open_log(disk, flusher, CONFIG)
    append(log, make_batch(1, SIZE, -1))
    write_now(log)
    untimed = StoredSegment(0, 1, 500, 77, True)
    assert await segments_of(log) == [untimed]
    log.close()
    assert oldest_segment(disk, DIRECTORY) == OldestSegment(500, untimed)


@pytest.mark.parametrize("position", range(12))
async def test_a_flipped_bit_in_an_index_makes_no_segment_older(
    disk: FaultyFileSystem, flusher: Flusher, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")
    filled(disk, flusher).close()
    index = disk.content(DIRECTORY / f"{0:020d}.timeindex")
    for bit in range(8):
        index.live[position] ^= 1 << bit
        log = open_log(disk, flusher, CONFIG)
        first = (await segments_of(log))[0]
        assert first.latest_ms >= 7
        assert (await segments_of(log))[0].latest_ms == 7, "the index is mended"
        log.abandon()
        await log.released()
        index = disk.content(DIRECTORY / f"{0:020d}.timeindex")
        assert bytes(index.live[:8]) == (7).to_bytes(8, "big")


async def test_files_stay_for_as_long_as_the_log_is_told(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = filled(disk, flusher, LogConfig(segment_bytes=1_000, file_delete_delay_ms=1 << 60))
    names = disk.entries(DIRECTORY).keys()
    await log.trim(4)
    assert names <= disk.entries(DIRECTORY).keys()
    assert (log.start_offset, log.size_bytes) == (4, 500)
    for crashed in map(disk.after_crash, (Survival.ALL, Survival.NONE)):
        again = open_log(crashed, flusher, CONFIG)
        assert again.start_offset == 4
        assert len(await segments_of(again)) == 1
        assert sum(name.endswith(".log") for name in crashed.entries(DIRECTORY)) == 1
        again.close()
    log.reconfigure(LogConfig(segment_bytes=1_000, file_delete_delay_ms=1))
    append(log, make_batch(1, SIZE, 1))
    append(log, make_batch(1, SIZE, 1))
    write_now(log)
    await log.trim(6)
    while f"{4:020d}.log" in disk.entries(DIRECTORY):
        await asyncio.sleep(0.001)
    assert f"{0:020d}.log" in disk.entries(DIRECTORY)
    assert len((await read_all(log))[0]) == 1
    log.close()
