"""Goal: to take back all that a consumer of a Shared subscription may hold holds nobody up.

Method: as many leases as one consumer may have, one a message, without any partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

import pytest

import stretches
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Lease
from penstock.broker.subscriptions.selectors.round_robin import RoundRobin
from penstock.limits import UNACKNOWLEDGED_MESSAGES
from penstock.memory import Memory
from receivers import consumer

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition

TRIES = 20
BAR_SECONDS = 0.010
HELD = int(UNACKNOWLEDGED_MESSAGES)


class House:
    """A selector with one consumer that holds messages, and one that waits."""

    def __init__(self, held: int) -> None:
        self.engine = Engine(Cursor(0), lambda: None, Memory().subscriptions)
        self.wakes = 0
        self.selector = RoundRobin(cast("Partition", None), self.engine, self.wake)
        self.member, self.other = consumer("one"), consumer("other")
        self.selector.add(self.member)
        self.selector.add(self.other)
        for offset in range(held):
            # With times of their own they are leases of their own.
            self.engine.acquire(self.member, offset, offset + 1, deadline=offset)

    def wake(self) -> None:
        self.wakes += 1

    async def released(self) -> None:
        while self.member.leases:
            await asyncio.sleep(0)

    def redelivered(self) -> list[tuple[int, int]]:
        """Take what came back as the other consumer; return offsets and numbers of deliveries."""
        found = []
        while (first := self.engine.next_returned()) is not None:
            extent = first.extent(first.start)
            assert extent is not None
            out = self.engine.acquire(self.other, *extent)
            assert out is not None
            found.append((extent[0], out.deliveries))
        return found


def leave(house: House, member: Consumer) -> None:
    house.selector.remove(member)


def give_all_back(house: House, member: Consumer) -> None:
    house.selector.redeliver(member, None)


def name_all(house: House, member: Consumer) -> None:
    house.selector.redeliver(member, set(range(HELD)))


WAYS = pytest.mark.parametrize("way", [leave, give_all_back, name_all])


async def longest(way: Callable[[House, Consumer], None]) -> float:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, stretches.MeasuredLoop)
    found: list[float] = []
    while len(found) < TRIES and min(found, default=BAR_SECONDS) >= BAR_SECONDS:
        house = House(HELD)
        await asyncio.sleep(0)
        loop.longest = 0.0
        way(house, house.member)
        await house.released()
        await asyncio.sleep(0)
        found.append(loop.longest)
        assert house.wakes > 1
    return min(found)


@WAYS
def test_no_consumer_that_gives_all_back_holds_the_loop(
    way: Callable[[House, Consumer], None],
) -> None:
    assert stretches.run(lambda: longest(way), collects=False) < BAR_SECONDS


@WAYS
async def test_all_is_delivered_again_once(way: Callable[[House, Consumer], None]) -> None:
    house = House(3_000)
    way(house, house.member)
    some = house.redelivered()
    assert 0 < len(some) < 3_000
    await house.released()
    found = some + house.redelivered()
    assert found == [(offset, 1 if way is leave else 2) for offset in range(3_000)]
    assert (house.member.unacknowledged, house.other.unacknowledged) == (0, 3_000)


@pytest.mark.parametrize("way", [give_all_back, name_all])
async def test_one_that_leaves_while_it_gives_back_keeps_nothing(
    way: Callable[[House, Consumer], None],
) -> None:
    house = House(3_000)
    way(house, house.member)
    leave(house, house.member)
    await house.released()
    assert [offset for offset, _ in house.redelivered()] == list(range(3_000))


async def test_the_last_consumer_ends_what_is_under_way() -> None:
    house = House(3_000)
    leave(house, house.member)
    leave(house, house.other)
    house.selector.stop()
    house.engine.start_over()
    held = house.engine.acquire(house.member, 0, 10)
    await asyncio.sleep(0.01)
    assert house.engine.next_returned() is None
    assert held is not None
    assert house.member.unacknowledged == 10


class CountedLease(Lease):
    freed: ClassVar = 0

    def __del__(self) -> None:
        CountedLease.freed += 1


async def test_what_is_taken_back_is_freed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.broker.subscriptions.leases.Lease", CountedLease)
    house, count = House(HELD), HELD
    for member in (house.member, house.other):
        house.selector.consumers.remove(member)
    before = CountedLease.freed
    house.engine.start_over()
    assert CountedLease.freed - before <= 1
    assert not house.member.leases
    assert not house.member.unacknowledged
    largest = 0
    async with asyncio.timeout(30):
        while (freed := CountedLease.freed - before) < count:
            await asyncio.sleep(0)
            largest = max(largest, CountedLease.freed - before - freed)
    assert largest < count / 3
