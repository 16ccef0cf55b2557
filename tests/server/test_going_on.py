"""Which tasks go on in which pass of the event loop, by a clock that only their steps move."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from contextlib import suppress

import pytest

from hand_clock import Clock
from penstock import going_on as module
from penstock.parties import ASKING
from penstock.tasks import Ended, begin, in_turns

STEP_SECONDS = 0.000_25
IN_A_PASS = 8
"""Twice as many as a share lasts for: as many go on when it is found that they were too many."""
MANY = 1_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    return clock


class Crowd:
    """Tasks that all wait for one thing, and what they do in each pass once it is there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.gate = asyncio.get_running_loop().create_future()
        self.done: list[str] = []
        self.passes: list[int] = []
        """How many had gone on at the end of each pass of the event loop."""

    async def _wait(self, party: str) -> None:
        await self.gate
        self._clock.now += STEP_SECONDS
        self.done.append(party)

    def start(self, party: str, count: int = 1) -> list[asyncio.Task[None]]:
        ASKING.set(party)
        return [asyncio.create_task(self._begun(party)) for _ in range(count)]

    async def _begun(self, party: str) -> None:
        begun = begin(self._wait(party))
        assert not isinstance(begun, Ended)
        await begun

    async def watch(self, count: int) -> None:
        while len(self.done) < count:
            self.passes.append(len(self.done))
            await asyncio.sleep(0)
        self.passes.append(len(self.done))

    def together(self) -> int:
        """The most that went on in one pass."""
        return max(after - before for before, after in itertools.pairwise(self.passes))


async def test_what_very_many_wait_for_has_few_of_them_go_on_in_one_pass(clock: Clock) -> None:
    crowd = Crowd(clock)
    tasks = crowd.start("many", MANY)
    await asyncio.sleep(0)
    crowd.gate.set_result(None)
    await crowd.watch(MANY)
    assert crowd.together() <= IN_A_PASS
    assert len(crowd.passes) < MANY, "as many in a pass as there is time for"
    await asyncio.gather(*tasks)


async def test_who_has_one_goes_on_before_the_second_of_who_has_many(clock: Clock) -> None:
    crowd = Crowd(clock)
    tasks = crowd.start("many", MANY) + crowd.start("one")
    await asyncio.sleep(0)
    crowd.gate.set_result(None)
    await crowd.watch(MANY + 1)
    assert crowd.done.index("one") <= 2 * IN_A_PASS
    await asyncio.gather(*tasks)


async def test_a_single_task_goes_on_in_the_pass_that_wakes_it(clock: Clock) -> None:
    crowd = Crowd(clock)
    (task,) = crowd.start("one")
    await asyncio.sleep(0)
    crowd.gate.set_result(None)
    await asyncio.sleep(0)
    assert crowd.done == ["one"]
    await task


async def test_those_that_are_cancelled_in_line_do_not_keep_others_there(clock: Clock) -> None:
    crowd = Crowd(clock)
    tasks = crowd.start("many", MANY)
    last = crowd.start("last")
    await asyncio.sleep(0)
    crowd.gate.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait_for(last[0], 60)
    assert crowd.done.count("many") <= 2 * IN_A_PASS
    assert crowd.done[-1] == "last"


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_what_very_many_fail_with_is_dealt_with_by_few_in_one_pass(
    clock: Clock, is_cancelled: bool
) -> None:
    crowd = Crowd(clock)
    never = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        try:
            await asyncio.shield(never) if is_cancelled else await never
        finally:
            clock.now += STEP_SECONDS
            crowd.done.append("many")

    async def begun() -> None:
        begun = begin(wait())
        assert not isinstance(begun, Ended)
        await begun

    tasks = [asyncio.create_task(begun()) for _ in range(MANY)]
    await asyncio.sleep(0)
    if is_cancelled:
        for task in tasks:
            task.cancel()
    else:
        never.set_exception(ValueError("so it is"))
    await crowd.watch(MANY)
    assert crowd.together() <= IN_A_PASS
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(each) for each in outcomes} == {
        asyncio.CancelledError if is_cancelled else ValueError
    }


async def test_work_in_turns_waits_once_however_deep_it_is(clock: Clock) -> None:
    crowd = Crowd(clock)
    entered: list[str] = []

    async def inner(party: str) -> str:
        entered.append(party)
        clock.now += STEP_SECONDS
        await crowd.gate
        return party

    async def outer(party: str) -> str:
        return await in_turns(inner(party))

    tasks = [asyncio.create_task(in_turns(outer("many"))) for _ in range(MANY)]
    await asyncio.sleep(0)
    assert len(entered) <= IN_A_PASS, "the first step has its turn too"
    tasks.pop().cancel()
    while len(entered) < MANY - 1:
        await asyncio.sleep(0)
    crowd.gate.set_result(None)
    assert await asyncio.gather(*tasks) == ["many"] * (MANY - 1)


async def test_what_fails_in_a_step_fails_for_who_waits(clock: Clock) -> None:
    del clock

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("so it is")

    with pytest.raises(ValueError, match="so it is"):
        await in_turns(fail())


class Large:
    """What a refusal must not keep."""


async def test_an_error_that_comes_back_is_in_no_cycle_with_what_met_it() -> None:
    waiting = [asyncio.get_running_loop().create_future()]
    kept: list[weakref.ref[Large]] = []

    async def look() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        await waiting[0]

    async def ask() -> None:
        with suppress(ValueError):
            await in_turns(look())

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    gc.disable()
    try:
        waiting[0].set_exception(ValueError("it is cut off"))
        await asking
        waiting.clear()
        assert kept[0]() is None
    finally:
        gc.enable()
