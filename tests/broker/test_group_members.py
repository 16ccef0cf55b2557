"""Goal: members keep their place, are let go, and no order of events breaks a group.

Method: as in test_groups.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from group_house import House
from penstock.broker.errors import (
    BrokerError,
    FencedInstanceError,
    IllegalGenerationError,
    InvalidGroupIdError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownGroupError,
    UnknownMemberError,
)
from penstock.broker.groups.member import Joined
from penstock.broker.groups.states import GroupState


@pytest.fixture
async def house() -> House:
    return House()


async def test_heartbeats_keep_a_member_and_silence_ends_it(house: House) -> None:
    noisy, silent = house.settle(house.join(), house.join())
    house.clock.advance(9)
    house.heartbeat(noisy)
    house.clock.advance(0.9)
    assert len(house.group.members) == 2
    house.clock.advance(0.1)
    assert [each.id for each in house.group.members] == [noisy.member_id]
    with pytest.raises(UnknownMemberError):
        house.heartbeat(silent)
    with pytest.raises(RebalanceInProgressError):
        house.heartbeat(noisy)


async def test_a_group_whose_last_member_falls_silent_is_empty(house: House) -> None:
    house.settle(house.join())
    house.clock.advance(10)
    assert house.group.state is GroupState.EMPTY
    assert house.group.generation == 2
    house.join()
    house.clock.advance(0.1)
    assert house.group.generation == 3


async def test_a_waiting_member_is_not_silent(house: House) -> None:
    slow, quick = house.settle(house.join(session_ms=60_000), house.join())
    waiting = house.join(quick.member_id, protocols=(("range", b"new"),))
    house.clock.advance(25)
    house.join(slow.member_id, session_ms=60_000)
    assert waiting.result().generation == 2


async def test_a_member_whose_connection_is_gone_is_silent(house: House) -> None:
    slow, quick = house.settle(house.join(session_ms=60_000), house.join())
    waiting = house.join(quick.member_id, protocols=(("range", b"new"),))
    waiting.cancel()
    house.clock.advance(20)
    assert [each.id for each in house.group.members] == [slow.member_id]


async def test_in_completing_rebalance_heartbeats_are_welcome(house: House) -> None:
    waiting = house.join()
    house.clock.advance(0.1)
    house.heartbeat(waiting.result())
    with pytest.raises(IllegalGenerationError):
        house.heartbeat(waiting.result()._replace(generation=7))


async def test_who_leaves_makes_the_others_join_again(house: House) -> None:
    leader, follower = house.settle(house.join(), house.join())
    assert house.groups.leave("g", leader.member_id, None) == leader.member_id
    with pytest.raises(RebalanceInProgressError):
        house.heartbeat(follower)
    again = house.join(follower.member_id)
    assert again.result().leader_id == follower.member_id
    house.groups.leave("g", follower.member_id, None)
    assert house.group.state is GroupState.EMPTY
    with pytest.raises(UnknownMemberError):
        house.groups.leave("g", follower.member_id, None)


async def test_a_promised_id_can_be_given_back(house: House) -> None:
    with pytest.raises(MemberIdRequiredError) as refusal:
        house.join(required=True)
    house.groups.leave("g", refusal.value.member_id, None)
    assert house.group.is_idle


async def test_unknown_groups_have_no_members(house: House) -> None:
    with pytest.raises(UnknownMemberError):
        house.groups.heartbeat("g", "m", None, 1)
    with pytest.raises(InvalidGroupIdError):
        house.groups.leave("", "m", None)


# Static members


async def test_a_restarted_static_member_keeps_its_place_without_rebalance(house: House) -> None:
    leader, old = house.settle(house.join(), house.join(instance="i"))
    new = house.join(instance="i").result()
    assert new.member_id != old.member_id
    assert (new.generation, new.leader_id) == (old.generation, leader.member_id)
    assert house.sync(new, instance="i").result().assignment == old.member_id.encode()
    with pytest.raises(FencedInstanceError):
        house.heartbeat(old, "i")
    with pytest.raises(FencedInstanceError):
        house.join(old.member_id, instance="i")
    assert house.group.state is GroupState.STABLE


@pytest.mark.parametrize("may_skip", [True, False])
async def test_a_restarted_static_leader_does_not_assign_anew(house: House, may_skip: bool) -> None:
    (old,) = house.settle(house.join(instance="i"))
    new = house.join(instance="i", may_skip=may_skip).result()
    assert new.skip_assignment is may_skip
    assert (new.leader_id == new.member_id) is may_skip
    assert bool(new.members) is may_skip
    assert house.sync(new, instance="i").result().assignment == old.member_id.encode()


async def test_a_restarted_static_member_that_changes_the_protocol_rebalances(house: House) -> None:
    house.settle(house.join(instance="i", protocols=(("a", b""), ("b", b""))))
    house.join(instance="i", protocols=(("b", b""), ("a", b"")))
    assert house.group.protocol_name == "b"
    assert house.group.generation == 2


async def test_a_waiting_static_member_is_fenced_by_its_successor(house: House) -> None:
    old = house.join(instance="i")
    new = house.join(instance="i")
    house.clock.advance(0.1)
    with pytest.raises(FencedInstanceError):
        old.result()
    assert new.result().generation == 1


async def test_a_static_member_that_does_not_rejoin_keeps_its_place(house: House) -> None:
    static, dynamic = house.settle(
        house.join(instance="i", session_ms=60_000), house.join(session_ms=60_000)
    )
    again = house.join(dynamic.member_id, protocols=(("range", b"new"),), session_ms=60_000)
    house.clock.advance(30)
    assert len(again.result().members) == 2
    assert again.result().leader_id == dynamic.member_id
    house.heartbeat(static._replace(generation=2), "i")


async def test_a_rebalance_that_nobody_joins_waits_for_the_static_member(house: House) -> None:
    static, dynamic = house.settle(
        house.join(instance="i", session_ms=60_000), house.join(session_ms=60_000)
    )
    house.groups.leave("g", dynamic.member_id, None)
    house.clock.advance(31)
    assert house.group.state is GroupState.PREPARING_REBALANCE
    assert house.join(static.member_id, instance="i").result().generation == 2


async def test_a_static_member_leaves_by_its_instance(house: House) -> None:
    (member,) = house.settle(house.join(instance="i"))
    with pytest.raises(FencedInstanceError):
        house.groups.leave("g", "another", "i")
    with pytest.raises(UnknownMemberError):
        house.groups.leave("g", "", "unknown")
    with pytest.raises(UnknownMemberError):
        house.heartbeat(member, "unknown")
    assert house.groups.leave("g", "", "i") == member.member_id
    assert house.group.state is GroupState.EMPTY


# Commits and deletion


async def test_commits_need_a_settled_generation_or_no_group(house: House) -> None:
    check = house.groups.check_commit
    check("g", "", None, -1)
    with pytest.raises(UnknownMemberError):
        check("g", "m", None, 1)
    waiting = house.join()
    with pytest.raises(UnknownMemberError):
        check("g", "", None, -1)
    house.clock.advance(0.1)
    member = waiting.result()
    with pytest.raises(RebalanceInProgressError):
        check("g", member.member_id, None, 1)
    house.sync(member, {})
    check("g", member.member_id, None, 1)
    with pytest.raises(IllegalGenerationError):
        check("g", member.member_id, None, 2)
    house.join()
    check("g", member.member_id, None, 1)


async def test_only_a_group_without_members_can_be_deleted(house: House) -> None:
    with pytest.raises(UnknownGroupError):
        house.groups.delete("g")
    (member,) = house.settle(house.join())
    with pytest.raises(NonEmptyGroupError):
        house.groups.delete("g")
    group = house.group
    house.groups.leave("g", member.member_id, None)
    house.groups.delete("g")
    assert group.state is GroupState.DEAD
    assert list(house.groups.all()) == []


async def test_an_id_that_was_handed_out_keeps_no_group(house: House) -> None:
    with pytest.raises(MemberIdRequiredError) as refusal:
        house.join(required=True)
    assert not house.group.is_idle
    house.groups.delete("g")
    assert list(house.groups.all()) == []
    with pytest.raises(UnknownMemberError):
        house.join(refusal.value.member_id)
    (member,) = house.settle(house.join())
    house.clock.advance(5)
    house.heartbeat(member)


# Whatever the order


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=60))
def test_no_order_of_events_breaks_the_group(events: list[tuple[int, int]]) -> None:
    asyncio.run(disorder(events))


async def disorder(events: list[tuple[int, int]]) -> None:
    house = House()
    waiting: list[asyncio.Future[Joined]] = []
    generation = 0
    for action, which in events:
        joined = [each.result() for each in waiting if was_answered(each)]
        member = joined[which % len(joined)] if joined else None
        with contextlib.suppress(BrokerError):
            disturb(house, action, which, member, waiting)
        if action == 7:
            generation = 0  # Of the run before.
        group = house.groups.get("g")
        if group is None:
            continue
        assert group.generation >= generation
        generation = group.generation
        ids = {each.id for each in group.members}
        assert (group.leader_id in ids) if ids else (group.leader_id is None)
        assert set(group._members._static_ids.values()) <= ids
        assert ("g" in house.store.groups) >= (group.state is GroupState.STABLE)
        if group.state is GroupState.STABLE:
            stored, members = house.store.groups["g"]
            assert (stored.generation, stored.leader) == (group.generation, group.leader_id)
            assert {each.id: each.assignment for each in group.members} == {
                each.member_id: each.assignment for each in members.values()
            }
        if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            assert ids
            assert group.protocol_name == "range"
    house.clock.advance(200)
    assert all(each.done() for each in waiting)
    group = house.groups.get("g")
    assert group is None or group.state is GroupState.EMPTY
    assert not house.store.groups


def was_answered(waiting: asyncio.Future[Joined]) -> bool:
    return waiting.done() and not waiting.cancelled() and not waiting.exception()


def disturb(
    house: House,
    action: int,
    which: int,
    member: Joined | None,
    waiting: list[asyncio.Future[Joined]],
) -> None:
    if action == 0:
        waiting.append(house.join(instance=f"i{which}" if which < 2 else None))
    elif action == 1:
        house.clock.advance(which * 2)
    elif action == 2:
        house.join(required=True)
    elif member and action == 3:
        waiting.append(house.join(member.member_id))
    elif member and action == 4:
        house.sync(member, {member.member_id: b"all"}).add_done_callback(lambda f: f.exception())
    elif member and action == 5:
        house.heartbeat(member)
    elif member and action == 6:
        house.groups.leave("g", member.member_id, None)
    elif action == 7:
        for each in waiting:
            each.cancel()
        house.restart()
