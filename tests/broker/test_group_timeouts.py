"""Goal: a member's time counts from the last sign of it, and no group waits for ever.

Method: as in `test_groups`, under a clock that the test turns.
"""

from __future__ import annotations

import pytest

from group_house import House
from penstock.broker.errors import UnknownMemberError
from penstock.broker.groups.states import GroupState


@pytest.fixture
async def house() -> House:
    return House()


def members(house: House) -> set[str]:
    return {member.id for member in house.group.members}


async def test_a_member_that_joins_again_brings_its_new_session_timeout(house: House) -> None:
    leader, follower = house.settle(house.join(), house.join())
    for _ in range(4):
        house.clock.advance(2)
        house.heartbeat(leader)
    assert house.join(follower.member_id, session_ms=30_000).done()
    for _ in range(10):
        house.clock.advance(2)
        house.heartbeat(leader)
    assert follower.member_id in members(house)
    for _ in range(6):
        house.clock.advance(2)
        if house.group.state is GroupState.STABLE:
            house.heartbeat(leader)
    assert follower.member_id not in members(house)


async def test_a_new_process_of_a_static_member_begins_its_session(house: House) -> None:
    house.settle(house.join(instance="one"))
    house.clock.advance(9)
    replaced = house.join(instance="one").result()
    house.clock.advance(9)
    assert members(house) == {replaced.member_id}
    house.clock.advance(2)
    assert not members(house)


async def test_a_member_whose_request_is_gone_after_a_long_wait_ends_with_its_session(
    house: House,
) -> None:
    first, second = house.join(rebalance_ms=90_000), house.join(rebalance_ms=90_000)
    house.clock.advance(1)
    joined = [first.result(), second.result()]
    leader = next(each for each in joined if each.member_id == each.leader_id)
    follower = next(each for each in joined if each is not leader)
    waiting = house.sync(follower)
    for _ in range(6):
        house.clock.advance(5)
        house.heartbeat(leader)
    assert follower.member_id in members(house)
    waiting.cancel()
    house.clock.advance(5)
    house.heartbeat(leader)
    house.clock.advance(6)
    assert follower.member_id not in members(house)


async def test_a_silent_static_member_keeps_a_newcomer_waiting_for_one_timeout_only(
    house: House,
) -> None:
    _, dynamic = house.settle(
        house.join(instance="one", session_ms=60_000, rebalance_ms=5_000),
        house.join(session_ms=60_000, rebalance_ms=5_000),
    )
    house.groups.leave("g", dynamic.member_id, None)
    house.clock.advance(6)
    assert house.group.state is GroupState.PREPARING_REBALANCE
    newcomer = house.join(session_ms=60_000, rebalance_ms=5_000)
    house.clock.advance(6)
    assert newcomer.result().generation == 2


async def test_a_new_generation_has_no_assignments_yet(house: House) -> None:
    leader, follower = house.settle(house.join(), house.join())
    assert all(member.assignment for member in house.group.members)
    again = [house.join(leader.member_id), house.join(follower.member_id)]
    assert all(each.done() for each in again)
    assert house.group.state is GroupState.COMPLETING_REBALANCE
    assert not any(member.assignment for member in house.group.members)


async def test_who_names_a_generation_is_no_stranger_to_an_empty_group(house: House) -> None:
    (alone,) = house.settle(house.join())
    house.groups.leave("g", alone.member_id, None)
    house.groups.check_commit("g", "", None, -1)
    with pytest.raises(UnknownMemberError):
        house.groups.check_commit("g", "", None, 0)
