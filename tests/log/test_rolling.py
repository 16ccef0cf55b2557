"""Goal: a segment ends for its age as in Kafka, and nobody can make one begin for each batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from faulty_files import FaultyFileSystem
from log_batches import append, make_batch, open_log, write_now
from penstock.limits import AGED_SEGMENT_BYTES, SEGMENT_MS_LEAST
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.config import NEVER_MS
from penstock.log.rolling import SegmentAge

HOUR_MS = 3_600_000
CONFIG = LogConfig(segment_ms=HOUR_MS)
LARGE = int(AGED_SEGMENT_BYTES)


class Clock:
    def __init__(self, now_ms: int = 10 * HOUR_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def test_a_segment_is_as_old_as_its_messages_say() -> None:
    age = SegmentAge(CONFIG, now_ms=Clock())
    age.begin(5_000)
    assert not age.is_over(5_000 + HOUR_MS, LARGE)
    assert age.is_over(5_001 + HOUR_MS, LARGE)
    assert not age.is_over(1, LARGE)
    age.begin(5_001 + HOUR_MS)
    assert not age.is_over(5_001 + HOUR_MS, LARGE)


def test_a_small_segment_is_as_old_as_the_clock_says() -> None:
    clock = Clock()
    age = SegmentAge(CONFIG, now_ms=clock)
    age.begin(0)
    for time_ms in range(0, 1000 * HOUR_MS, HOUR_MS):
        assert not age.is_over(time_ms, LARGE - 1)
    clock.now_ms += HOUR_MS + 1
    assert age.is_over(1, 1)


def test_where_messages_have_no_time_the_clock_decides() -> None:
    clock = Clock()
    age = SegmentAge(CONFIG, now_ms=clock)
    age.begin(-1)
    clock.now_ms += HOUR_MS
    assert not age.is_over(-1, LARGE)
    clock.now_ms += 1
    assert age.is_over(-1, LARGE)


def test_the_first_batch_that_is_seen_stands_for_one_that_is_not_known() -> None:
    age = SegmentAge(CONFIG, now_ms=Clock())
    assert not age.is_over(7, LARGE)
    assert age.is_over(8 + HOUR_MS, LARGE)


def test_a_change_holds_for_the_segment_that_has_begun() -> None:
    age = SegmentAge(replace(CONFIG, segment_ms=NEVER_MS), now_ms=Clock())
    assert not age.is_over(NEVER_MS, LARGE)
    age.reconfigure(CONFIG)
    age.begin(0)
    age.reconfigure(replace(CONFIG, segment_ms=2 * HOUR_MS))
    assert not age.is_over(2 * HOUR_MS, LARGE)
    age.reconfigure(CONFIG)
    assert age.is_over(2 * HOUR_MS, LARGE)


def test_segments_vary_by_the_jitter_and_none_ends_too_soon() -> None:
    config = replace(CONFIG, segment_jitter_ms=HOUR_MS // 2)
    ends = set()
    for _ in range(50):
        age = SegmentAge(config, now_ms=Clock())
        age.begin(0)
        assert not age.is_over(HOUR_MS // 2, LARGE)
        assert age.is_over(HOUR_MS + 1, LARGE)
        ends.add(age.is_over(HOUR_MS * 3 // 4, LARGE))
    assert ends == {True, False}
    hasty = SegmentAge(replace(config, segment_ms=1, segment_jitter_ms=NEVER_MS), now_ms=Clock())
    hasty.begin(0)
    assert not hasty.is_over(SEGMENT_MS_LEAST, LARGE)
    assert hasty.is_over(SEGMENT_MS_LEAST + 1, LARGE)


@pytest.mark.parametrize("wrong", [{"segment_ms": 0}, {"segment_jitter_ms": -1}])
def test_no_log_is_told_nonsense(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="segment_ms"):
        LogConfig(**wrong)


def put(log: LocalLog, time_ms: int) -> None:
    append(log, make_batch(size=LARGE, timestamp=time_ms))
    write_now(log)


async def test_a_log_begins_a_segment_in_time_also_after_a_restart(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    put(log, 5_000)
    put(log, 5_000 + HOUR_MS)
    assert log.segment_count == 1
    log.close()
    log = open_log(disk, flusher, replace(CONFIG, segment_ms=5 * HOUR_MS))
    log._appender._age._began_ms = log._appender._age._now_ms()
    put(log, 6_000 + HOUR_MS)
    assert log.segment_count == 1
    log.reconfigure(CONFIG)
    put(log, 6_000 + HOUR_MS)
    assert log.segment_count == 2
    log.close()


async def test_a_log_that_is_told_to_begins_segments_of_another_size(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    for _ in range(4):
        append(log, make_batch(size=1_000))
    log.reconfigure(LogConfig(segment_bytes=2_500))
    for _ in range(4):
        append(log, make_batch(size=1_000))
    write_now(log)
    assert log.full_segment_ends == [12, 18]
    log.close()
