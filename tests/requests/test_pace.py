"""Goal: long work leaves others their turns, short work has none to leave.

Method: passes of a real event loop are counted, under a clock of the test's own.
"""

from __future__ import annotations

import asyncio

import pytest

from hand_clock import Clock
from penstock import limits
from penstock import pace as pace_module
from penstock.pace import Pace

STEP = limits.TURN_MICROSECONDS / 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pace_module, "perf_counter", made)
    return made


class Work:
    """Elements that take so long each, and what the clock said when each step began."""

    def __init__(self, clock: Clock, elements: int, seconds: float) -> None:
        self.clock, self.elements, self.seconds = clock, elements, seconds
        self.done = 0

    async def run(self) -> None:
        def make(number: int) -> int:
            self.clock.now += self.seconds
            self.done += 1
            return number

        assert await Pace().each(range(self.elements), make) == list(range(self.elements))


async def test_what_is_short_ends_in_its_first_step(clock: Clock) -> None:
    work = Work(clock, 500, STEP / 1_000)
    with pytest.raises(StopIteration):
        work.run().send(None)
    assert work.done == 500


async def test_what_is_long_leaves_others_a_turn_after_each_step(clock: Clock) -> None:
    work = Work(clock, 10_000, STEP / 100)
    running = asyncio.ensure_future(work.run())
    longest = 0.0
    while not running.done():
        began = clock.now
        await asyncio.sleep(0)
        longest = max(longest, clock.now - began)
    assert work.done == 10_000
    assert longest <= 1.2 * STEP


async def test_many_long_works_do_one_step_in_each_pass(clock: Clock) -> None:
    works = [Work(clock, 1_000, STEP / 100) for _ in range(20)]
    running = [asyncio.ensure_future(work.run()) for work in works]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    longest = 0.0
    while not all(each.done() for each in running):
        began = clock.now
        await asyncio.sleep(0)
        longest = max(longest, clock.now - began)
    assert longest <= 1.2 * STEP
    assert [work.done for work in works] == [1_000] * 20


async def test_a_work_that_is_given_up_keeps_no_other_from_going_on(clock: Clock) -> None:
    works = [Work(clock, 1_000, STEP / 100) for _ in range(3)]
    running = [asyncio.ensure_future(work.run()) for work in works]
    await asyncio.sleep(0)
    running[0].cancel()
    await asyncio.wait(running)
    assert [work.done for work in works][1:] == [1_000, 1_000]


async def test_counting_and_going_through_go_in_steps_too(clock: Clock) -> None:
    def steps() -> list[None]:
        clock.now += STEP
        return [None] * 100

    pace = Pace()
    assert await pace.counted("abca") == {"a": 2, "b": 1, "c": 1}
    clock.now += STEP
    going = asyncio.ensure_future(pace.through(steps()))
    await asyncio.sleep(0)
    assert not going.done()
    await going
