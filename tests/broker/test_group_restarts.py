"""Goal: a stable group outlasts the broker: its members go on without a rebalance.

Method: the groups are made anew from what was stored, under a clock that the test turns. A store
that waits shows what members hear before their generation is durable.
"""

from __future__ import annotations

import asyncio

import pytest

from group_house import House
from penstock import limits
from penstock.broker.errors import (
    FencedInstanceError,
    GroupFullError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from penstock.broker.groups.states import GroupState
from penstock.metadata.errors import MetadataError


@pytest.fixture
async def house() -> House:
    return House()


async def test_members_of_a_stable_group_go_on_after_a_restart(house: House) -> None:
    leader, follower = house.settle(house.join(), house.join(instance="i"))
    before = {each.id: each.row("g") for each in house.group.members}
    house.restart()
    assert house.group.state is GroupState.STABLE
    assert {each.id: each.row("g") for each in house.group.members} == before
    house.heartbeat(leader)
    house.heartbeat(follower, "i")
    house.groups.check_commit("g", follower.member_id, "i", follower.generation)
    with pytest.raises(IllegalGenerationError):
        house.groups.check_commit("g", leader.member_id, None, leader.generation + 1)
    with pytest.raises(FencedInstanceError):
        house.heartbeat(leader, "i")
    assert house.sync(follower, instance="i").result().assignment == follower.member_id.encode()
    again = house.join(follower.member_id, instance="i").result()
    assert (again.generation, again.leader_id) == (leader.generation, leader.member_id)


async def test_sessions_begin_anew_with_the_start(house: House) -> None:
    (member,) = house.settle(house.join(session_ms=10_000))
    house.clock.advance(9)
    house.restart()
    house.clock.advance(9)
    house.heartbeat(member)
    house.clock.advance(10.1)
    assert house.group.state is GroupState.EMPTY
    assert not house.store.groups, "an empty group is not kept"


async def test_the_next_generation_is_counted_on(house: House) -> None:
    (member,) = house.settle(house.join())
    house.restart()
    newcomer = house.join()
    with pytest.raises(RebalanceInProgressError):
        house.heartbeat(member)
    again = house.join(member.member_id)
    assert {again.result().generation, newcomer.result().generation} == {member.generation + 1}


async def test_nobody_hears_of_an_assignment_before_it_is_stored(house: House) -> None:
    waiting = [house.join(), house.join()]
    house.clock.advance(1)
    leader, follower = (each.result() for each in waiting)
    house.store.waits = True
    synced = [house.sync(follower), house.sync(leader, {follower.member_id: b"all"})]
    assert not any(each.done() for each in synced)
    house.heartbeat(follower)
    with pytest.raises(RebalanceInProgressError):
        house.groups.check_commit("g", follower.member_id, None, follower.generation)
    house.store.answer()
    assert synced[0].result().assignment == b"all"
    assert house.group.state is GroupState.STABLE


async def test_members_hear_that_their_generation_was_not_stored_and_join_again(
    house: House,
) -> None:
    waiting = house.join()
    house.clock.advance(1)
    member = waiting.result()
    house.store.waits = True
    synced = house.sync(member, {})
    house.store.answer(MetadataError("the disk is full"))
    with pytest.raises(MetadataError):
        synced.result()
    again = house.join(member.member_id).result()
    assert again.generation == member.generation + 1
    synced = house.sync(again, {})
    house.store.answer()
    assert synced.result()


async def test_what_was_stored_too_late_is_not_answered(house: House) -> None:
    waiting = house.join()
    house.clock.advance(1)
    member = waiting.result()
    house.store.waits = True
    synced = house.sync(member, {})
    house.join()
    with pytest.raises(RebalanceInProgressError):
        synced.result()
    house.store.answer()
    assert house.group.state is GroupState.PREPARING_REBALANCE


async def test_a_leader_that_repeats_itself_has_nothing_stored_twice(house: House) -> None:
    waiting = house.join()
    house.clock.advance(1)
    member = waiting.result()
    house.store.waits = True
    house.sync(member, {member.member_id: b"first"}).add_done_callback(lambda f: f.exception())
    again = house.sync(member, {member.member_id: b"second"})
    house.store.answer()
    assert again.result().assignment == b"first"


async def test_a_restart_in_a_rebalance_leaves_the_generation_before(house: House) -> None:
    (member,) = house.settle(house.join())
    house.join()
    with pytest.raises(RebalanceInProgressError):
        house.heartbeat(member)
    house.restart()
    house.groups.check_commit("g", member.member_id, None, member.generation)
    house.heartbeat(member)


async def test_a_static_member_is_in_its_place_when_it_hears_so(house: House) -> None:
    (old,) = house.settle(house.join(instance="i"))
    house.store.waits = True
    waiting = house.join(instance="i", may_skip=True)
    assert not waiting.done()
    house.store.answer()
    new = waiting.result()
    house.restart()
    house.heartbeat(new, "i")
    with pytest.raises(FencedInstanceError):
        house.heartbeat(old, "i")
    assert house.group.leader_id == new.member_id


async def test_a_static_member_that_was_not_stored_hears_so(house: House) -> None:
    house.settle(house.join(instance="i"))
    house.store.waits = True
    waiting = house.join(instance="i")
    house.store.answer(MetadataError("the disk is full"))
    with pytest.raises(MetadataError):
        waiting.result()


async def test_members_that_left_before_a_restart_are_unknown(house: House) -> None:
    (member,) = house.settle(house.join())
    house.groups.leave("g", member.member_id, None)
    house.restart()
    with pytest.raises(UnknownMemberError):
        house.heartbeat(member)


async def test_what_a_group_keeps_is_bounded(house: House, monkeypatch) -> None:
    monkeypatch.setattr("penstock.broker.groups.roster.GROUP_BYTES", 1000)
    monkeypatch.setattr("penstock.broker.groups.classic.GROUP_BYTES", 1000)
    (member,) = house.settle(house.join(protocols=(("range", bytes(400)),)))
    house.join(member.member_id, protocols=(("range", bytes(800)),)).cancel()
    with pytest.raises(GroupFullError):
        house.join(protocols=(("range", bytes(200)),))
    with pytest.raises(GroupFullError):
        house.sync(house.settle(house.join(member.member_id))[0], {member.member_id: bytes(1001)})
    assert limits.GROUP_BYTES > 1000


async def test_a_stopped_broker_ends_no_session(house: House) -> None:
    house.settle(house.join())
    group = house.group
    house.groups.stop()
    house.clock.advance(1000)
    assert group.state is GroupState.STABLE
    assert house.store.groups
    await asyncio.sleep(0)
