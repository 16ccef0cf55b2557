"""Goal: members find together, keep their generation, and are let go, as kafka.md 5.6 says.

Method: requests go into `Groups` under a clock that the test turns; no sockets, no waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Awaitable, Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker import groups as groups_module
from penstock.broker.errors import (
    BrokerError,
    FencedInstanceError,
    GroupFullError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownGroupError,
    UnknownMemberError,
)
from penstock.broker.group import TRANSITIONS, Group, GroupInput, GroupSettings, GroupState
from penstock.broker.group_member import Joined, JoinRequest, Protocols, Synced, SyncRequest
from penstock.broker.groups import Groups


class VirtualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._number = itertools.count()

    def time(self) -> float:
        return self._now

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object
    ) -> VirtualTimer:
        timer = VirtualTimer(lambda: callback(*args))
        heapq.heappush(self._timers, (self._now + delay, next(self._number), timer))
        return timer

    def advance(self, seconds: float) -> None:
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback:
                timer.callback()
        self._now = end


class House:
    """Groups, their clock, and short names for what tests do with them."""

    def __init__(self, **options: int) -> None:
        self.clock = VirtualClock()
        self.groups = Groups(GroupSettings(**options), self.clock)

    @property
    def group(self) -> Group:
        group = self.groups.get("g")
        assert group is not None
        return group

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = (("range", b"meta"),),
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
        required: bool = False,
        may_skip: bool = False,
        protocol_type: str = "consumer",
    ) -> asyncio.Future[Joined]:
        waiting = self.groups.join(
            "g",
            JoinRequest(
                member_id,
                instance,
                "client",
                "/127.0.0.1",
                protocol_type,
                protocols,
                session_ms,
                rebalance_ms,
                required,
                may_skip,
            ),
        )
        return as_future(waiting)

    def sync(
        self,
        joined: Joined,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
    ) -> asyncio.Future[Synced]:
        request = SyncRequest(
            joined.member_id, instance, joined.generation, None, None, assignments or {}
        )
        return as_future(self.groups.sync("g", request))

    def heartbeat(self, joined: Joined, instance: str | None = None) -> None:
        self.groups.heartbeat("g", joined.member_id, instance, joined.generation)

    def settle(self, *waiting: asyncio.Future[Joined]) -> list[Joined]:
        """End the first wait and bring the members to Stable."""
        self.clock.advance(1)
        members = [each.result() for each in waiting]
        leader = next(each for each in members if each.member_id == each.leader_id)
        for each in members:
            if each is not leader:
                self.sync(each)
        self.sync(leader, {each.member_id: each.member_id.encode() for each in members})
        assert self.group.state is GroupState.STABLE
        return members


def as_future(waiting: Awaitable[object]) -> asyncio.Future:  # type: ignore[type-arg]  # of both
    assert isinstance(waiting, asyncio.Future)
    return waiting


@pytest.fixture
async def house() -> House:
    return House()


def test_the_table_has_no_way_back_from_dead_and_no_other_pairs() -> None:
    for state, cause in itertools.product(GroupState, GroupInput):
        group = Group("g", GroupSettings(), VirtualClock())
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
    monkeypatch.setattr(groups_module, "GROUPS_MAX", 1)
    house = House()
    request = JoinRequest("", None, "c", "h", "consumer", (("range", b""),), 10_000, 10_000)
    house.groups.join("h", request)
    with pytest.raises(GroupFullError):
        house.join()
    house.clock.advance(0.1)
    house.clock.advance(20)
    house.join()
    assert house.groups.get("h") is None


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


# Staying and leaving


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
    assert house.group.is_deletable


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
    with pytest.raises(IllegalGenerationError):
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


# Whatever the order


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=60))
def test_no_order_of_events_breaks_the_group(events: list[tuple[int, int]]) -> None:
    asyncio.run(disorder(events))


async def disorder(events: list[tuple[int, int]]) -> None:
    house = House()
    waiting: list[asyncio.Future[Joined]] = []
    generation = 0
    for action, which in events:
        joined = [each.result() for each in waiting if each.done() and not each.exception()]
        member = joined[which % len(joined)] if joined else None
        with contextlib.suppress(BrokerError):
            disturb(house, action, which, member, waiting)
        group = house.groups.get("g")
        if group is None:
            continue
        assert group.generation >= generation
        generation = group.generation
        ids = {each.id for each in group.members}
        assert (group.leader_id in ids) if ids else (group.leader_id is None)
        assert set(group._static_ids.values()) <= ids
        if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            assert ids
            assert group.protocol_name == "range"
    house.clock.advance(200)
    assert all(each.done() for each in waiting)
    group = house.groups.get("g")
    assert group is None or group.state is GroupState.EMPTY


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
