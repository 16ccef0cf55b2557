"""Goal: a rebalance of the largest group, and its commit to the largest topic, hold nobody up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import stretches
from group_house import House
from penstock.broker.groups.offsets import CommittedOffset, CommittedOffsets, OffsetOwner
from penstock.limits import GROUP_MEMBERS, TOPIC_PARTITIONS
from penstock.memory import Memory
from penstock.metadata.offsets import OffsetRepository

if TYPE_CHECKING:
    from penstock.metadata.store import Change, MetadataStore

TRIES = 20
BAR_SECONDS = 0.010


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def of_rebalance() -> float:
    """Return the seconds of the longest step of a whole round, with one member too few."""
    house = House()
    joins = [house.join() for _ in range(GROUP_MEMBERS - 1)]
    steps = [seconds(lambda: house.clock.advance(1))]
    leader = joins[0].result()
    for each in joins[1:]:
        house.sync(each.result())
    assignments = {each.result().member_id: b"assigned" for each in joins}
    steps.append(seconds(lambda: house.sync(leader, assignments)))
    steps.append(seconds(house.join))
    return max(steps)


async def test_a_rebalance_of_the_largest_group() -> None:
    found: list[float] = []
    slowness = stretches.slowness()
    while len(found) < TRIES and min(found, default=BAR_SECONDS) >= BAR_SECONDS:
        found.append(of_rebalance() / slowness)
    assert min(found) < BAR_SECONDS


class Store:
    """A database that has every change in the next pass of the loop."""

    def __init__(self) -> None:
        self.rows = 0

    def read(self, _statement: object) -> list[object]:
        return []

    async def write(self, change: Change) -> None:
        self.rows += len(change.rows)
        await asyncio.sleep(0)


async def of_commit() -> float:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, stretches.MeasuredLoop)
    found: list[float] = []
    given = {partition: CommittedOffset(1) for partition in range(TOPIC_PARTITIONS)}
    while len(found) < TRIES and min(found, default=BAR_SECONDS) >= BAR_SECONDS:
        store = Store()
        repository = OffsetRepository(cast("MetadataStore", store))
        offsets = CommittedOffsets(repository, bool, Memory())
        await asyncio.sleep(0)
        loop.longest = 0.0
        gone = await offsets.commit(OffsetOwner("kafka", "g"), given)
        await asyncio.sleep(0)
        found.append(loop.longest)
        assert (gone, store.rows) == ({0}, TOPIC_PARTITIONS - 1)
        assert len(offsets.of_owner(OffsetOwner("kafka", "g"))) == TOPIC_PARTITIONS - 1
    return min(found)


def test_a_commit_to_the_largest_topic() -> None:
    assert stretches.run(of_commit, collects=False) < BAR_SECONDS
