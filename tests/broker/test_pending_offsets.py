"""Goal: what a group committed last is its offset, and that of a transaction comes with it.

Method: a coordinator over a real database, restarted over what it left.
"""

from __future__ import annotations

import itertools

import pytest

from penstock import wall_clock
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from transaction_house import GROUP, TIMEOUT_MS, House

ID = "payments"
WIDE = OffsetOwner("kafka", "gruppe-\u00fc")


async def test_offsets_take_effect_with_their_transaction(house: House) -> None:
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    await house.commit_offset(ID, producer, 1, 40)
    assert (house.committed(1), house.pending.is_pending(GROUP, 1)) == (None, True)
    await house.restart()
    assert (house.committed(1), house.pending.is_pending(GROUP, 1)) == (None, True)
    await house.coordinator.end(ID, producer, committed=True)
    assert (house.committed(1), house.pending.is_pending(GROUP, 1)) == (40, False)
    await house.commit_offset(ID, producer, 1, 50)
    await house.coordinator.end(ID, producer, committed=False)
    assert (house.committed(1), house.pending.is_pending(GROUP, 1)) == (40, False)
    await house.restart()
    assert house.committed(1) == 40


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
async def test_the_offset_that_came_last_stays_though_the_clock_was_set_back(
    house: House, monkeypatch: pytest.MonkeyPatch, *, at_once: bool, restarted: bool
) -> None:
    clock = itertools.count(10**12, -(10**6))
    monkeypatch.setattr(wall_clock, "now_ms", lambda: next(clock))
    producer = await house.coordinator.initialise(ID, TIMEOUT_MS)
    await house.commit_offset_at_once(1, 40)
    if restarted:
        await house.restart()
    await house.commit_offset(ID, producer, 1, 50)
    if restarted:
        await house.restart()
    if at_once:
        await house.commit_offset_at_once(1, 60)
    await house.coordinator.end(ID, producer, committed=True)
    assert house.committed(1) == (60 if at_once else 50)


async def test_what_was_counted_is_given_back_whatever_the_database_made_of_a_text(
    house: House,
) -> None:
    before = house.memory.metadata.used
    await house.offsets.commit(WIDE, {1: CommittedOffset(7, note="\u20ac")})
    await house.restart()
    await house.offsets.delete(WIDE)
    assert house.memory.metadata.used == before
