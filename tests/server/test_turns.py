"""Goal: whoever asks one thing is served between two turns of those who asked a thousand.

Method: workers that count their steps and note who did one, in passes of a real event loop. A
clock of the test's own decides what a step takes.
"""

from __future__ import annotations

import asyncio

import pytest

from hand_clock import Clock
from penstock import limits
from penstock.server import turns as turns_module
from penstock.server.turns import Newcomers, Turn, Turns, UsedByOne

SHARE = limits.TURN_MICROSECONDS / 1_000_000


class Worker:
    """Has so many steps to do, each of which takes so long."""

    def __init__(self, name: str, house: House, steps: int, seconds: float) -> None:
        self.name, self.house, self.steps, self.seconds = name, house, steps, seconds
        self.in_line = False
        self.used = UsedByOne()

    def take_turn(self, turn: Turn) -> bool:
        while self.steps:
            self.steps -= 1
            self.house.clock.now += self.seconds
            self.house.done.append(self.name)
            if turn.is_over():
                break
        return self.steps > 0


class House:
    """The turns, and who did each step so far."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.turns = Turns()
        self.done: list[str] = []

    def worker(self, name: str, steps: int, seconds: float = 1e-6) -> Worker:
        return Worker(name, self, steps, seconds)

    async def one_pass(self) -> list[str]:
        """Return who did the steps of the next pass."""
        before = len(self.done)
        await asyncio.sleep(0)
        return self.done[before:]

    async def to_the_end(self) -> None:
        while await self.one_pass():
            pass


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> House:
    clock = Clock()
    monkeypatch.setattr(turns_module, "perf_counter", clock)
    return House(clock)


async def test_what_is_small_is_done_at_once(house: House) -> None:
    for number in range(10):
        house.turns.now(house.worker(str(number), 5))
    assert len(house.done) == 50
    assert await house.one_pass() == []


async def test_a_turn_ends_after_its_steps_and_goes_on_in_the_next_passes(house: House) -> None:
    greedy = house.worker("greedy", 3 * limits.TURN_STEPS)
    house.turns.now(greedy)
    assert len(house.done) == limits.TURN_STEPS
    assert len(await house.one_pass()) == limits.TURN_STEPS
    await house.to_the_end()
    assert (greedy.steps, greedy.in_line) == (0, False)


async def test_who_comes_is_served_at_once_beside_many_who_are_not_done(house: House) -> None:
    crowd = [house.worker("greedy", 1_000, 10e-6) for _ in range(40)]
    for each in crowd:
        house.turns.now(each)
    first = house.worker("polite", 1, 10e-6)
    house.turns.now(first)
    # It comes behind them, but they get only a few steps each before it.
    while first.steps:
        await house.one_pass()
    assert house.done.index("polite") <= 2 * (40 * limits.FIRST_TURN_STEPS + limits.TURN_STEPS)
    for _ in range(20):
        house.turns.now(house.worker("polite", 1, 10e-6))
        assert house.done[-1] == "polite"
        between = await house.one_pass()
        assert len(between) * 10e-6 <= 2 * SHARE


async def test_who_asked_a_moment_ago_goes_before_those_who_were_quiet(house: House) -> None:
    """A thousand connections that ask all at once, after they were held open for a while."""
    quiet = [house.worker("quiet", 1, SHARE) for _ in range(100)]
    known = house.worker("known", 1)
    house.clock.now += 5
    house.turns.now(known)
    for each in quiet:
        house.turns.soon(each)
    for _ in range(20):
        known.steps = 1
        house.turns.now(known)
        between = await house.one_pass()
        assert known.steps == 0
        assert between.count("quiet") <= 1
    await house.to_the_end()
    assert not any(each.steps for each in quiet)


async def test_who_was_quiet_has_turns_beside_those_who_are_known(house: House) -> None:
    quiet = house.worker("quiet", 1)
    house.clock.now += 5
    crowd = [house.worker("known", 1_000, SHARE) for _ in range(100)]
    for each in [quiet, *crowd]:
        house.turns.soon(each)
    await house.one_pass()
    assert quiet.steps == 0


async def test_many_who_wait_for_their_turn_are_a_crowd(house: House) -> None:
    assert not house.turns.is_crowded()
    for _ in range(100):
        house.turns.soon(house.worker("one of many", 1))
    assert house.turns.is_crowded()
    await house.to_the_end()
    assert not house.turns.is_crowded()


async def test_a_pass_does_no_more_than_its_shares_however_many_are_in_line(house: House) -> None:
    for _ in range(1_000):
        house.turns.now(house.worker("greedy", 1_000, 10e-6))
    while len(house.done) < 10_000:
        began = house.clock.now
        await house.one_pass()
        assert house.clock.now - began <= 2 * SHARE + 20e-6


async def test_who_is_alone_in_line_has_a_whole_turn(house: House) -> None:
    house.turns.soon(house.worker("alone", limits.TURN_STEPS))
    assert len(await house.one_pass()) == limits.TURN_STEPS
    for name in ("first", "last"):
        house.turns.soon(house.worker(name, limits.TURN_STEPS))
    served = await house.one_pass()
    assert served.count("first") == limits.FIRST_TURN_STEPS, "somebody waits behind it"
    assert served.count("last") == limits.TURN_STEPS
    await house.to_the_end()


async def test_those_who_are_not_done_take_turns(house: House) -> None:
    for name in "abc":
        house.turns.soon(house.worker(name, 400, SHARE / limits.TURN_STEPS))
    await house.to_the_end()
    changes = [a for a, b in zip(house.done, [*house.done[1:], ""], strict=True) if a != b]
    assert "".join(changes).startswith("abcabcabc")


async def test_a_crowd_that_arrives_leaves_a_share_to_those_before(house: House) -> None:
    house.turns.now(house.worker("earlier", 1_000, SHARE / 10))
    for _ in range(30):
        for _ in range(50):
            house.turns.now(house.worker("crowd", 1, SHARE / 10))
        assert "earlier" in await house.one_pass()


async def test_a_step_that_takes_long_is_the_only_one_of_its_turn(house: House) -> None:
    house.turns.now(house.worker("heavy", 3, 10 * SHARE))
    assert house.done == ["heavy"]
    house.turns.now(house.worker("polite", 1))
    assert await house.one_pass() == ["polite", "heavy"]


async def test_who_is_in_line_is_in_it_once(house: House) -> None:
    worker = house.worker("worker", 2)
    house.turns.soon(worker)
    house.turns.soon(worker)
    house.turns.now(worker)
    assert house.done == []
    assert await house.one_pass() == ["worker", "worker"]
    assert await house.one_pass() == []


async def test_a_worker_that_has_its_turn_is_given_no_other_one(house: House) -> None:
    class Nested(Worker):
        def take_turn(self, turn: Turn) -> bool:
            house.turns.now(self)
            house.turns.soon(self)
            return super().take_turn(turn)

    house.turns.now(Nested("nested", house, 1, 0))
    assert house.done == ["nested"]
    assert await house.one_pass() == []


async def test_who_has_used_little_goes_before_those_who_have_used_much(house: House) -> None:
    light = house.worker("light", 0)
    heavy = [house.worker(f"heavy-{number}", 3, 10 * SHARE) for number in range(50)]
    for worker in heavy:
        worker.used.add(0, 1)
        house.turns.soon(worker)
    for count in range(1, 20):
        light.steps = 1
        house.turns.now(light)
        assert house.done.count("light") == count, "it does not wait for a pass"
        assert len(await house.one_pass()) == 1, "a step that is longer than a share is alone"
    await house.to_the_end()
    assert sum(name.startswith("heavy") for name in house.done) == 150, "all have their turns"


async def test_those_who_have_used_much_get_on_beside_those_who_use_little(house: House) -> None:
    light = [house.worker(f"light-{number}", 0, SHARE) for number in range(3)]
    heavy = house.worker("heavy", 5, SHARE)
    heavy.used.add(0, 1)
    house.turns.soon(heavy)
    for _ in range(5):
        for worker in light:
            worker.steps = 1
            house.turns.soon(worker)
        assert "heavy" in await house.one_pass()


async def test_who_stops_using_much_has_used_little_after_a_while(house: House) -> None:
    worker = house.worker("worker", 1, 100 * SHARE)
    assert worker.used.is_little()
    house.turns.soon(worker)
    await house.to_the_end()
    assert not worker.used.is_little()
    house.clock.now += 1
    assert worker.used.is_little()


async def test_a_new_connection_has_used_what_those_before_it_did(house: House) -> None:
    newcomers = Newcomers()
    known = house.worker("known", 1)
    known.used = newcomers.one_more("10.0.0.1")
    house.clock.now += 2
    for _ in range(100):
        newcomers.one_more("10.0.0.1").add(house.clock.now, SHARE)
    new, elsewhere = house.worker("new", 1), house.worker("elsewhere", 1)
    new.used = newcomers.one_more("10.0.0.1")
    elsewhere.used = newcomers.one_more("10.0.0.2")
    known.used.add(house.clock.now, 0)
    assert known.used.is_little(), "it is new no more"
    assert elsewhere.used.is_little()
    assert not new.used.is_little()
    for worker in (new, known, elsewhere):
        house.turns.soon(worker)
    assert await house.one_pass() == ["known", "elsewhere", "new"]
    house.clock.now += 1.1
    assert new.used.is_little(), "neither is it by now"
    another = newcomers.one_more("10.0.0.1")
    another.add(house.clock.now, SHARE / 10)
    assert another.is_little(), "what was used is forgotten"


def test_addresses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES_REMEMBERED", 2)
    newcomers = Newcomers()
    for address in ("a", "b", "a", "c"):
        newcomers.one_more(address)
    assert list(newcomers._used) == ["a", "c"]
