"""Goal: members find together in one generation, as in Kafka's classic groups.

Method: requests go into `GroupRegistry` under a clock that the test turns; no sockets, no waiting.
"""

from __future__ import annotations

import itertools

import pytest

from group_house import House, MemoryStore, VirtualClock
from penstock.broker.errors import (
    GroupFullError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from penstock.broker.groups.classic import Group
from penstock.broker.groups.member import JoinRequest, Synced, SyncRequest
from penstock.broker.groups.settings import GroupSettings
from penstock.broker.groups.states import TRANSITIONS, GroupInput, GroupState
from penstock.memory import Memory


@pytest.fixture
async def house() -> House:
    return House()


def test_the_table_has_no_way_back_from_dead_and_no_other_pairs() -> None:
    for state, cause in itertools.product(GroupState, GroupInput):
        group = Group("g", GroupSettings(), VirtualClock(), MemoryStore(), Memory(), lambda _: None)
        group.state = state
        if (state, cause) in TRANSITIONS:
            group._enter(cause)
            assert group.state is TRANSITIONS[state, cause]
        else:
            with pytest.raises(KeyError):
                group._enter(cause)
    assert not any(state is GroupState.DEAD for state, _ in TRANSITIONS)


# Joining


async def test_members_that_come_together_share_the_first_generation(house: House) -> None:
    first, second = house.join(), house.join()
    house.clock.advance(0.1)
    assert not first.done()
    house.clock.advance(0.1)
    leader, follower = first.result(), second.result()
    assert leader.generation == follower.generation == 1
    assert leader.leader_id == follower.leader_id == leader.member_id
    assert [each.metadata for each in leader.members] == [b"meta", b"meta"]
    assert follower.members == ()
    assert house.group.state is GroupState.COMPLETING_REBALANCE


async def test_each_newcomer_prolongs_the_first_wait(house: House) -> None:
    first = house.join()
    house.clock.advance(0.09)
    second = house.join()
    house.clock.advance(0.09)
    third = house.join()
    house.clock.advance(0.05)
    assert not first.done()
    house.clock.advance(0.1)
    assert {each.result().generation for each in (first, second, third)} == {1}


async def test_the_first_wait_ends_with_the_rebalance_timeout(house: House) -> None:
    first = house.join(rebalance_ms=150)
    house.clock.advance(0.09)
    house.join(rebalance_ms=150)
    house.clock.advance(0.06)
    assert first.done()


async def test_without_delay_the_first_member_goes_at_once() -> None:
    house = House(initial_rebalance_delay_ms=0)
    assert house.join().result().generation == 1


async def test_newer_clients_join_with_an_id_they_were_given(house: House) -> None:
    with pytest.raises(MemberIdRequiredError) as refusal:
        house.join(required=True)
    member_id = refusal.value.member_id
    assert member_id.startswith("client-")
    waiting = house.join(member_id, required=True)
    house.clock.advance(0.1)
    assert waiting.result().member_id == member_id


async def test_a_promised_id_holds_a_rebalance_back_until_it_expires(house: House) -> None:
    (member,) = house.settle(house.join())
    with pytest.raises(MemberIdRequiredError):
        house.join(required=True, session_ms=6_000)
    again = house.join(member.member_id)
    assert not again.done()
    house.clock.advance(6)
    assert again.result().generation == 2


async def test_a_static_member_needs_no_promise(house: House) -> None:
    waiting = house.join(instance="i", required=True)
    house.clock.advance(0.1)
    assert waiting.result().member_id.startswith("i-")


async def test_a_newcomer_makes_everybody_join_again(house: House) -> None:
    (member,) = house.settle(house.join())
    newcomer = house.join()
    with pytest.raises(RebalanceInProgressError):
        house.heartbeat(member)
    again = house.join(member.member_id)
    assert again.result().generation == newcomer.result().generation == 2
    assert again.result().leader_id == member.member_id


async def test_who_does_not_join_again_in_time_is_dropped(house: House) -> None:
    slow, quick = house.settle(house.join(session_ms=60_000), house.join(session_ms=60_000))
    again = house.join(quick.member_id, protocols=(("range", b"new"),), session_ms=60_000)
    house.clock.advance(29)
    assert not again.done()
    house.clock.advance(1)
    assert [each.member_id for each in again.result().members] == [quick.member_id]
    with pytest.raises(UnknownMemberError):
        house.heartbeat(slow)


async def test_a_follower_with_nothing_new_gets_its_place_again(house: House) -> None:
    leader, follower = house.settle(house.join(), house.join())
    assert house.join(follower.member_id).result() == follower
    assert house.group.state is GroupState.STABLE
    house.join(leader.member_id)
    assert house.group.state is GroupState.PREPARING_REBALANCE


async def test_who_missed_the_answer_gets_it_again_before_the_assignment(house: House) -> None:
    first = house.join()
    house.clock.advance(0.1)
    assert house.join(first.result().member_id).result() == first.result()


async def test_changed_metadata_starts_a_rebalance(house: House) -> None:
    _, follower = house.settle(house.join(), house.join())
    house.join(follower.member_id, protocols=(("range", b"other topics"),))
    assert house.group.state is GroupState.PREPARING_REBALANCE


async def test_the_protocol_most_members_prefer_is_chosen(house: House) -> None:
    a, b, only_one = ("a", b"1"), ("b", b"2"), ("c", b"3")
    waiting = [
        house.join(protocols=(only_one, b, a)),
        house.join(protocols=(b, a)),
        house.join(protocols=(a, b)),
    ]
    leader = house.settle(*waiting)[0]
    assert leader.protocol_name == "b"
    assert [each.metadata for each in leader.members] == [b"2"] * 3


async def test_members_need_a_protocol_in_common(house: House) -> None:
    house.join()
    for refused in (
        {"protocols": (("sticky", b""),)},
        {"protocol_type": "connect"},
        {"protocols": ()},
        {"protocol_type": ""},
    ):
        with pytest.raises(InconsistentGroupProtocolError):
            house.join(**refused)  # type: ignore[arg-type]  # one keyword each


async def test_names_ids_and_timeouts_are_checked(house: House) -> None:
    with pytest.raises(UnknownMemberError):
        house.join("nobody")
    for session_ms in (5_999, 1_800_001):
        with pytest.raises(InvalidSessionTimeoutError):
            house.join(session_ms=session_ms)
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    with pytest.raises(InvalidGroupIdError):
        house.groups.join("", request)
    house.join()
    with pytest.raises(UnknownMemberError):
        house.join("nobody")


async def test_a_full_group_takes_no_more() -> None:
    house = House(members_max=2)
    house.join()
    with pytest.raises(MemberIdRequiredError):
        house.join(required=True)
    with pytest.raises(GroupFullError):
        house.join()


async def test_groups_without_members_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.limits.KAFKA_GROUPS", 1)
    house = House()
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    house.groups.join("h", request)
    with pytest.raises(GroupFullError):
        house.join()
    house.clock.advance(0.1)
    house.clock.advance(20)
    house.join()
    assert house.groups.get("h") is None


async def test_one_address_has_so_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.limits.ADDRESS_GROUPS", 2)
    house = House()
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    house.groups.join("a", request, "10.0.0.1")
    house.groups.join("b", request, "10.0.0.1")
    with pytest.raises(GroupFullError):
        house.groups.join("c", request, "10.0.0.1")
    house.groups.join("c", request, "10.0.0.2")
    house.groups.join("a", request, "10.0.0.1")
    house.clock.advance(0.1)
    house.clock.advance(20)
    house.groups.join("d", request, "10.0.0.1")
    assert {group.id for group in house.groups.all()} == {"c", "d"}


async def test_groups_that_were_restored_count_for_their_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.limits.ADDRESS_GROUPS", 1)
    house = House()
    joined = house.join()
    house.clock.advance(1)
    house.sync(joined.result(), {joined.result().member_id: b"all"})
    house.restart()
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    with pytest.raises(GroupFullError):
        house.groups.join("other", request, "127.0.0.1")
    house.groups.join("theirs", request, "10.0.0.2")
    house.clock.advance(11)
    house.groups.join("other", request, "127.0.0.1")
    assert house.groups.get("g") is None, "its member was not heard of again"


async def test_room_is_made_at_the_same_cost_however_many_groups_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 2_000
    monkeypatch.setattr("penstock.limits.ADDRESS_GROUPS", count)
    house = House()
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    for number in range(count):
        house.groups.join(f"g{number}", request, "10.0.0.1")
    looked_at = 0
    is_idle = Group.is_idle.fget
    assert is_idle is not None

    def counted(group: Group) -> bool:
        nonlocal looked_at
        looked_at += 1
        return bool(is_idle(group))

    monkeypatch.setattr(Group, "is_idle", property(counted))
    for _ in range(count):  # All have members, and each was idle once.
        with pytest.raises(GroupFullError):
            house.groups.join("one more", request, "10.0.0.1")
    assert looked_at == 0
    last = house.groups.get(f"g{count - 1}")
    assert last is not None
    (member,) = last.members
    house.clock.advance(0.1)
    house.groups.leave(last.id, member.id, None)
    house.groups.join("one more", request, "10.0.0.1")
    assert house.groups.get(last.id) is None
    assert looked_at < 20


# Assignments


async def test_everybody_gets_the_leaders_bytes(house: House) -> None:
    first, second, third = house.join(), house.join(), house.join()
    house.clock.advance(1)
    early = house.sync(second.result())
    assert not early.done()
    leader = house.sync(
        first.result(),
        {first.result().member_id: b"one", second.result().member_id: b"two"},
    )
    assert leader.result() == Synced("consumer", "range", b"one")
    assert early.result().assignment == b"two"
    assert house.sync(third.result()).result().assignment == b""
    assert house.group.state is GroupState.STABLE


async def test_a_waiting_sync_is_told_of_the_next_rebalance(house: House) -> None:
    _, second = house.join(), house.join()
    house.clock.advance(1)
    waiting = house.sync(second.result())
    house.join()
    with pytest.raises(RebalanceInProgressError):
        waiting.result()


async def test_sync_checks_generation_protocol_and_state(house: House) -> None:
    (member,) = house.settle(house.join())
    with pytest.raises(IllegalGenerationError):
        house.sync(member._replace(generation=0))
    with pytest.raises(UnknownMemberError):
        house.sync(member._replace(member_id="nobody"))
    for wrong in (("connect", None), (None, "sticky")):
        request = SyncRequest(member.member_id, None, 1, *wrong, {})
        with pytest.raises(InconsistentGroupProtocolError):
            house.groups.sync("g", request)
    house.join()
    with pytest.raises(RebalanceInProgressError):
        house.sync(member)


async def test_who_does_not_sync_in_time_is_dropped(house: House) -> None:
    first, second = house.join(), house.join()
    house.clock.advance(1)
    follower = house.sync(second.result())
    for _ in range(6):
        house.clock.advance(5)
        if not follower.done():
            house.heartbeat(first.result())
    with pytest.raises(RebalanceInProgressError):
        follower.result()
    assert [each.id for each in house.group.members] == [second.result().member_id]
