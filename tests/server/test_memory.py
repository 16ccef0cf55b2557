"""Goal: large holders share what there is, who holds little goes on, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
import time

import pytest

from patience import PATIENCE_SECONDS, until
from penstock import limits, memory
from penstock.memory import Holding, Memory, MemoryShortError, text_bytes

MIB = 1 << 20
BUDGET = 256 * MIB
LITTLE = limits.LITTLE_MEMORY_BYTES
LEAST = limits.LEAST_MEMORY_BYTES


class Reclaimer:
    """Notes what it is asked for; `reclaimed` is called at a cut."""

    def __init__(self) -> None:
        self.recounts = 0
        self.cuts: list[int] = []
        self.reclaimed = lambda: None

    def recount(self) -> None:
        self.recounts += 1

    def cut(self, size: int) -> None:
        self.cuts.append(size)
        self.reclaimed()


class Kept:
    """A cache."""

    def __init__(self, budget: Memory) -> None:
        self.held = Holding(budget.caches)
        budget.add_cache(self)

    def empty(self) -> None:
        self.held.set(0)


@pytest.fixture
def budget():
    made = Memory(BUDGET)
    made.set_reclaimer(Reclaimer())
    return made


def fill(budget: Memory, holders: int) -> list[int]:
    """Have one holder after the other take what it may, a megabyte at a time."""
    held = [0] * holders
    for number in range(holders):
        while budget.room(held[number]) >= MIB:
            budget.receiving.take(MIB)
            held[number] += MIB
    return held


@pytest.mark.parametrize("last", ["a", "\u20ac", "\U0001f600"])
def test_one_wide_character_makes_all_of_a_text_wide(last: str) -> None:
    text = "a" * 10_000 + last
    counted = text_bytes(text)
    sqlite3.connect(":memory:").execute("SELECT ?", (text,))
    assert counted == text_bytes(text) == pytest.approx(sys.getsizeof(text), abs=100)
    assert text_bytes("") == 0


def test_large_holders_leave_something_for_the_next_one(budget):
    held = fill(budget, 12)
    assert held == sorted(held, reverse=True)
    assert BUDGET // 3 < held[0] < BUDGET * 2 // 3
    assert min(held) == MIB
    assert budget.used < BUDGET * 4 // 5
    assert budget.room(2 * LITTLE) <= 0 < budget.room()


def test_who_holds_little_gets_the_last_quarter(budget):
    budget.answers.take(BUDGET * 3 // 4)
    assert budget.room() == LITTLE
    assert budget.room(LITTLE) <= 0
    rooms = []
    for _ in range(100):
        rooms.append(budget.room())
        budget.answers.take(rooms[-1])
    assert rooms[:30] == [LITTLE] * 30
    assert rooms == sorted(rooms, reverse=True), "each leaves something for the next one"
    assert budget.used < BUDGET + 80 * LEAST


def test_who_holds_next_to_nothing_always_goes_on(budget):
    budget.answers.take(100 * BUDGET)
    assert budget.room() == LEAST
    assert budget.fits(1, held=LEAST - 1)
    assert not budget.fits(1, held=LEAST)


async def test_who_is_alone_may_have_more_than_there_is(budget):
    assert budget.fits(10 * BUDGET)
    budget.receiving.take(2 * BUDGET)
    assert budget.fits(BUDGET, held=2 * BUDGET), "it goes on"
    assert not budget.fits(LEAST + 1), "nobody else does"


async def test_many_caches_are_emptied_in_steps_and_each_in_its_turn(budget):
    """One takes a quarter of a turn, so a turn has some of them."""
    emptied: list[int] = []

    class Slow:
        def __init__(self, number: int) -> None:
            self.number = number
            budget.add_cache(self)

        def empty(self) -> None:
            emptied.append(self.number)
            time.sleep(limits.TURN_MICROSECONDS / 4_000_000)

    caches = [Slow(number) for number in range(40)]
    budget.receiving.take(BUDGET)
    steps = []
    while len(emptied) < 40:
        before = len(emptied)
        budget.fits(BUDGET)
        steps.append(len(emptied) - before)
        await asyncio.sleep(memory._LOOK_SECONDS)
    assert max(steps) <= 4
    assert sorted(emptied[:40]) == list(range(40))
    del caches[:]
    assert not budget._caches


async def test_caches_are_emptied_before_anybody_waits(budget):
    cache = Kept(budget)
    cache.held.set(BUDGET - 10)
    assert budget.fits(MIB)
    assert budget.used == 0
    cache.held.set(MIB)
    del cache
    assert budget.used == 0, "what nobody knows any more is given back"


async def test_what_is_gone_unnoticed_is_counted_before_anybody_waits(budget):
    budget.answers.take(BUDGET)
    budget._reclaimer.recount = lambda: budget.answers.take(-budget.answers.used)
    assert budget.fits(MIB)


async def test_those_who_wait_get_on_in_order_as_it_fits(budget):
    budget.answers.take(BUDGET)
    granted: list[str] = []
    budget.wait(100 * MIB, 0, lambda: granted.append("large"))
    budget.wait(MIB, 0, lambda: granted.append("little"))
    await asyncio.sleep(0.05)
    assert granted == []
    budget.answers.take(-BUDGET // 4)
    await until(lambda: granted)
    assert granted == ["little"], "a large one does not hold it up"
    budget.answers.take(-budget.answers.used)
    await until(lambda: len(granted) == 2)
    assert granted == ["little", "large"]


async def test_while_somebody_waits_others_are_cut(budget, monkeypatch):
    budget.answers.take(BUDGET)
    granted = asyncio.Event()
    budget.wait(MIB, 0, granted.set)
    await asyncio.sleep(5 * memory._LOOK_SECONDS)
    assert budget._reclaimer.cuts == []
    monkeypatch.setattr(limits, "SHORTAGE_SECONDS", 0)
    budget._reclaimer.reclaimed = lambda: budget.answers.take(-BUDGET)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await granted.wait()
    assert budget._reclaimer.cuts == [MIB * 3 // 2], "its share of what is left then is a MiB"


async def test_others_are_cut_for_all_who_wait_and_for_what_is_beyond_the_budget(
    budget, monkeypatch
):
    monkeypatch.setattr(limits, "SHORTAGE_SECONDS", 0)
    budget.answers.take(BUDGET + 5 * MIB)
    budget._reclaimer.reclaimed = lambda: budget.answers.take(-budget.answers.used)
    granted: list[int] = []
    for number in range(10):
        budget.wait(LEAST, MIB, lambda number=number: granted.append(number))
    await until(lambda: len(granted) == 10)
    assert budget._reclaimer.cuts == [10 * (3 * LEAST + MIB) // 2 + 5 * MIB]


async def test_nobody_is_cut_for_one_who_is_gone(budget, monkeypatch):
    monkeypatch.setattr(limits, "SHORTAGE_SECONDS", 0)
    budget.answers.take(BUDGET)
    wanted = budget.wait(MIB, 0, lambda: None)
    budget.forget(wanted)
    await asyncio.sleep(5 * memory._LOOK_SECONDS)
    assert budget._reclaimer.cuts == []


async def test_all_who_wait_are_looked_at_however_many(budget, monkeypatch):
    monkeypatch.setattr(memory, "_LOOKED_AT_TOGETHER", 10)
    budget.answers.take(BUDGET * 3 // 4)
    for _ in range(95):
        budget.wait(100 * MIB, 0, lambda: None)
    granted = asyncio.Event()
    budget.wait(MIB, 0, granted.set)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await granted.wait()


async def test_a_read_gets_what_there_is_and_gives_it_back(budget):
    with budget.reading() as reading:
        assert await reading.grant(50 * MIB) == 50 * MIB
        assert budget.used == 50 * MIB
        reading.set(3)
        assert await reading.grant(2) == 2
        assert budget.used == 5
    assert budget.used == 0
    budget.answers.take(170 * MIB)
    with budget.reading() as reading:
        assert LITTLE < await reading.grant(50 * MIB) < 50 * MIB
    budget.answers.take(BUDGET)
    with budget.reading() as reading, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reading.grant(50 * MIB)
    assert budget.reads.used == 0


async def test_what_is_granted_to_one_is_not_granted_to_the_next(budget):
    budget.answers.take(BUDGET)
    readings = [budget.reading() for _ in range(100)]
    grants = [asyncio.create_task(each.grant(MIB)) for each in readings]
    await asyncio.sleep(0)
    budget.answers.take(-10 * MIB)
    await until(lambda: budget.reads.used)
    await asyncio.sleep(5 * memory._LOOK_SECONDS)
    granted = sum(grant.done() for grant in grants)
    assert 0 < granted <= 10
    assert budget.reads.used == granted * MIB
    for grant in grants:
        grant.cancel()
    await asyncio.wait(grants)
    del readings, grants
    assert budget.reads.used == 0


async def test_what_work_raises_whose_caller_has_left_is_for_nobody(budget, caplog):
    work = asyncio.get_running_loop().create_future()
    with budget.reading() as held:
        assert await held.grant(MIB) == MIB
        waiting = asyncio.ensure_future(held.until_done(work))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert budget.used == MIB
    work.set_exception(ValueError("it is cut off"))
    await until(lambda: budget.used == 0)
    del work
    gc.collect()
    assert caplog.messages == []


class Process:
    """What a process is found to have."""

    def __init__(self, budget: Memory) -> None:
        self.bytes = int(limits.PROCESS_BYTES)
        self.looks = 0
        self._budget = budget
        budget.set_resident(self)

    def __call__(self) -> int:
        self.looks += 1
        return self.bytes

    def found_with(self, size: int) -> None:
        """It has so much, and some time has passed."""
        self.bytes = size
        time.sleep(0.03)
        self._budget.measure()


async def test_one_after_the_other_goes_beyond_the_budget(budget):
    budget.answers.take(100 * MIB)
    began: list[int] = []
    ends = [asyncio.Event() for _ in range(3)]

    async def reserve(number: int) -> None:
        with budget.reading() as held:
            await held.reserve(150 * MIB)
            began.append(number)
            await ends[number].wait()

    readers = [asyncio.ensure_future(reserve(number)) for number in range(3)]
    await until(lambda: began == [0])
    assert budget.used == 250 * MIB
    assert budget.room() >= LITTLE, "who holds little has what he had before"
    readers[1].cancel()
    ends[0].set()
    await until(lambda: began == [0, 2])
    ends[2].set()
    await asyncio.gather(*readers, return_exceptions=True)
    assert budget.used == 100 * MIB


async def test_nobody_goes_far_beyond_the_budget(budget, monkeypatch):
    monkeypatch.setattr(limits, "RESERVED_SECONDS", 0.05)
    budget.answers.take(BUDGET * 6 // 5 - 150 * MIB + 1)
    with budget.reading() as held:
        with pytest.raises(MemoryShortError):
            await held.reserve(150 * MIB)
        budget.answers.take(-1)
        await held.reserve(150 * MIB)
        assert budget.used == BUDGET * 6 // 5


async def test_what_was_refused_leaves_its_turn_to_the_next(budget, monkeypatch):
    budget.answers.take(200 * MIB)
    monkeypatch.setattr(limits, "RESERVED_SECONDS", 0.05)
    with budget.reading() as large, budget.reading() as less:
        reserving = asyncio.ensure_future(large.reserve(200 * MIB))
        await asyncio.sleep(0)
        monkeypatch.setattr(limits, "RESERVED_SECONDS", PATIENCE_SECONDS)
        await less.reserve(100 * MIB)
        with pytest.raises(MemoryShortError):
            await reserving
        assert less.size == 100 * MIB


def test_what_no_account_knows_counts(budget):
    process = Process(budget)
    budget.receiving.take(10 * MIB)
    process.found_with(limits.PROCESS_BYTES + 110 * MIB)
    assert (budget.unknown.used, budget.used) == (100 * MIB, 110 * MIB)
    process.found_with(limits.PROCESS_BYTES + 5 * MIB)
    assert budget.unknown.used == limits.CONVERSIONS_BYTES, "for what is loaded later"


def test_clients_have_half_of_the_budget_whatever_the_process_has(budget):
    Process(budget).found_with(100 * BUDGET)
    assert budget.used == BUDGET // 2
    assert budget.room() > BUDGET // 8


async def test_a_process_that_has_much_does_not_keep_a_large_request_from_being_alone(budget):
    Process(budget).found_with(100 * BUDGET)
    assert budget.fits(10 * BUDGET)
    budget.receiving.take(BUDGET)
    assert not budget.fits(MIB)


async def test_the_process_is_measured_when_somebody_asks_but_not_each_time(budget):
    process = Process(budget)
    process.found_with(limits.PROCESS_BYTES + BUDGET)
    looks = process.looks
    for _ in range(1000):
        budget.fits(1)
    assert looks <= process.looks < looks + 100
    budget.receiving.take(BUDGET // 8)
    assert not budget.fits(BUDGET // 4)
