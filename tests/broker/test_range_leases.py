"""Goal: what is being read stays, and nobody keeps a log for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from aged_logs import DAY_MS, NODE, append, days, made
from penstock import limits
from penstock.broker.retention import leases as module
from penstock.broker.retention.leases import NOTHING, RangeLeases, TooManyLeasesError
from running import running

A, B = 1, 2
LONG = int(limits.RANGE_HELD_SECONDS)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> RangeLeases:
    return RangeLeases(clock)


def test_the_first_offset_that_somebody_reads_is_needed(leases: RangeLeases, clock: Clock) -> None:
    assert leases.needed_from(A) == NOTHING
    leases.hold("x", A, 7, 10)
    leases.hold("y", A, 5, 20)
    leases.hold("y", B, 1, 20)
    assert (leases.needed_from(A), leases.needed_from(B), len(leases)) == (5, 1, 3)
    leases.hold("y", A, 9, 20)
    assert leases.needed_from(A) == 7
    clock.now = 10
    assert (leases.needed_from(A), len(leases)) == (9, 2)
    leases.release("y")
    assert (leases.needed_from(A), leases.needed_from(B), len(leases)) == (NOTHING, NOTHING, 0)
    leases.hold("x", A, 1, 10)
    leases.forget([A, B])
    assert (leases.needed_from(A), len(leases)) == (NOTHING, 0)


def test_what_is_due_is_held_back_for_so_long(leases: RangeLeases, clock: Clock) -> None:
    for _ in range(3):
        clock.now += LONG * 2
        assert leases.may_hold(A, is_due=False)
    for _ in range(2):
        assert leases.may_hold(A, is_due=True)
        clock.now += LONG / 2
    assert leases.may_hold(A, is_due=True)
    clock.now += 1
    assert not leases.may_hold(A, is_due=True)
    assert leases.may_hold(B, is_due=True)
    assert leases.may_hold(A, is_due=False)
    assert leases.may_hold(A, is_due=True)


def test_no_more_is_held_than_there_is_room_for(
    leases: RangeLeases, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RANGE_LEASES", 3)
    for number in range(3):
        leases.hold(f"x{number}", number, 0, 10)
    with pytest.raises(TooManyLeasesError):
        leases.hold("y", A, 0, 10)
    leases.hold("x1", A, 5, 10)
    clock.now = 10
    leases.hold("y", A, 0, 10)
    assert len(leases) == 1


async def test_retention_keeps_what_is_held(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, days(*[9] * 6))
        broker.retention.leases.hold("x", partition.id, 3, 60)
        await broker.retention.check()
        assert partition.start_offset == 2
        await partition.trim(4)  # What a person says goes all the same.
        assert partition.start_offset == 4
        broker.retention.leases.release("x")
        await broker.retention.check()
        assert partition.start_offset == 6
        broker.retention.leases.hold("x", partition.id, 3, 60)
        await broker.topics.delete(topic)
        assert len(broker.retention.leases) == 0


async def test_nobody_keeps_what_is_due_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, 2, retention_ms=DAY_MS, retention_topic_bytes=1 << 20)
        for partition in topic.partitions:
            await append(partition, days(*[9] * 6))
        leases = broker.retention.leases
        monkeypatch.setattr(leases, "_now", clock)
        for number in range(4):
            leases.hold(f"x{number}", topic.partitions[0].id, number % 2, LONG)
            await broker.retention.check()
            assert [each.start_offset for each in topic.partitions] == [0, 6]
            leases.release(f"x{number}")
            clock.now += LONG / 3
        leases.hold("y", topic.partitions[0].id, 0, LONG)
        await broker.retention.check()
        assert [each.start_offset for each in topic.partitions] == [6, 6]
