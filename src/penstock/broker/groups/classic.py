"""One consumer group of Kafka's classic protocol: who is in it, and what each member reads.

The group goes through generations. In PreparingRebalance it collects a JoinGroup of every member;
then a generation begins, and in CompletingRebalance it waits for the leader's assignment, which it
hands out without looking into it once it is stored; then it is Stable until somebody comes, goes,
falls silent or changes its mind, through a restart of the broker too. Requests that have to wait
are futures in their members; all else is synchronous, so nothing happens between two lines of a
method.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import (
    FencedInstanceError,
    GroupFullError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from penstock.broker.groups.member import Joined, Member, MemberMetadata, Synced
from penstock.broker.groups.roster import Roster
from penstock.broker.groups.states import TRANSITIONS, GroupInput, GroupState
from penstock.limits import GROUP_BYTES
from penstock.memory import Holding
from penstock.metadata.classic_groups import ClassicGroupRow

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Iterable

    from penstock.broker.clock import Clock, Timer
    from penstock.broker.groups.member import JoinRequest, SyncRequest
    from penstock.broker.groups.settings import GroupSettings
    from penstock.broker.groups.store import GroupStore
    from penstock.memory import Memory
    from penstock.metadata.classic_groups import ClassicMemberRow


_PROMISE_BYTES: Final = 1024
"""What an id that was handed out is taken to need, with its timer."""


class Group:
    """Raises UnknownMemberError, FencedInstanceError, IllegalGenerationError where they apply."""

    def __init__(
        self,
        group_id: str,
        settings: GroupSettings,
        clock: Clock,
        store: GroupStore,
        memory: Memory,
        became_idle: Callable[[Group], None],
    ) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self._settings = settings
        self._clock = clock
        self._store = store
        self._became_idle = became_idle
        self._is_stored = False
        self._members = Roster(memory)
        # Ids handed out by MemberIdRequiredError that have not joined yet.
        self._promised: dict[str, Timer] = {}
        self._promised_held = Holding(memory.groups)
        # One timer is enough: it belongs to the state the group is in.
        self._timer: Timer | None = None
        self._is_gathering = False
        self._has_new_member = False
        # Those of a rebalance that may not have joined again yet.
        self._awaited: list[Member] = []
        # The generation whose assignment the leader has sent.
        self._assigned = -1

    @property
    def members(self) -> Collection[Member]:
        return self._members.all

    @property
    def is_idle(self) -> bool:
        """Whether nobody is in it, and nobody is about to join."""
        return self.state is GroupState.EMPTY and not self._promised

    def join(self, request: JoinRequest) -> asyncio.Future[Joined]:
        """Take a member into the next generation, or say what its place in this one is.

        Raises InconsistentGroupProtocolError, MemberIdRequiredError and GroupFullError besides.
        """
        self._members.check(request, self.protocol_type)
        if not request.member_id:
            return self._join_new(request)
        if request.member_id in self._promised and request.group_instance_id is None:
            self._take_promise(request.member_id)
            return self._add(request.member_id, request)
        member = self._members.get(request.member_id, request.group_instance_id)
        return self._join_again(member, request)

    def sync(self, request: SyncRequest) -> asyncio.Future[Synced]:
        """Return the member's assignment when the leader has sent it.

        Raises RebalanceInProgressError when the member has to join again,
        InconsistentGroupProtocolError when it means another protocol than the chosen one, and
        GroupFullError when its assignment is too large.
        """
        member = self._members.get(request.member_id, request.group_instance_id)
        self._check_generation(request.generation)
        if (request.protocol_type or self.protocol_type) != self.protocol_type or (
            request.protocol_name or self.protocol_name
        ) != self.protocol_name:
            raise InconsistentGroupProtocolError(f"the group runs {self.protocol_name}")
        if sum(map(len, request.assignments.values())) > GROUP_BYTES:
            raise GroupFullError(f"an assignment has at most {GROUP_BYTES} bytes")
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError("the group is gathering its members")
        waiting = member.begin_sync()
        member.synced = True
        self._touch(member)
        if self.state is GroupState.STABLE:
            member.complete_sync(self._synced(member))
        elif member.id == self.leader_id:
            self._assign(request)
        return waiting

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation: int) -> None:
        """Note that a member is alive; raises RebalanceInProgressError when it has to rejoin."""
        member = self._members.get(member_id, group_instance_id)
        self._check_generation(generation)
        self._touch(member)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError("the group is gathering its members")

    def check_commit(self, member_id: str, group_instance_id: str | None, generation: int) -> None:
        """Check that offsets may be committed by this member, or by nobody's member to no group.

        Raises RebalanceInProgressError while the generation has no assignment yet.
        """
        if generation < 0 and not member_id and not self._members:
            return
        member = self._members.get(member_id, group_instance_id)
        self._check_generation(generation)
        self._touch(member)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise RebalanceInProgressError("the members have no assignment yet")

    def leave(self, member_id: str, group_instance_id: str | None) -> str:
        """Remove a member at its own wish, and return its id.

        A static member may be named by its instance alone, with an empty member id.
        """
        if member_id in self._promised:
            self._forget_promise(member_id)
            return member_id
        if group_instance_id is not None and not member_id:
            member_id = self._members.static_id(group_instance_id) or ""
        member = self._members.get(member_id, group_instance_id)
        self._remove(member)
        self._rebalance()
        return member.id

    def delete(self) -> None:
        """End the group, which must be empty. Ids that were handed out are unknown from now on."""
        assert self.state is GroupState.EMPTY, "only a group without members is deleted"
        self.stop()
        self._promised.clear()
        self._promised_held.set(0)
        self._enter(GroupInput.DELETE)

    def restore(self, group: ClassicGroupRow, members: Iterable[ClassicMemberRow]) -> None:
        """Go on with the generation that the last run left; all sessions begin anew."""
        self._is_stored = True
        self.generation, self.leader_id = group.generation, group.leader
        self.protocol_type, self.protocol_name = group.protocol_type, group.protocol
        for row in members:
            self._members.add(Member.restored(row))
        self._enter(GroupInput.RESTORE)
        for member in self.members:
            self._touch(member)

    def stop(self) -> None:
        """Let no more time pass: the broker stops."""
        timers = [*self._promised.values(), self._timer, *(each.timer for each in self.members)]
        for timer in timers:
            if timer is not None:
                timer.cancel()

    def metadata(self, member: Member) -> bytes:
        """The member's own bytes for the protocol that was chosen; empty while none is."""
        return member.metadata(self.protocol_name)

    # Membership

    def _join_new(self, request: JoinRequest) -> asyncio.Future[Joined]:
        instance_id = request.group_instance_id
        replaced = self._members.static_id(instance_id)
        if replaced is not None:
            return self._replace_static(replaced, request)
        if len(self._members) + len(self._promised) >= self._settings.members_max:
            raise GroupFullError(f"the group has {self._settings.members_max} members")
        member_id = f"{instance_id or request.client_id}-{uuid.uuid4()}"
        if request.member_id_required and instance_id is None:
            self._promised[member_id] = self._clock.call_later(
                request.session_timeout_ms / 1000, self._forget_promise, member_id
            )
            self._promised_held.set(len(self._promised) * _PROMISE_BYTES)
            raise MemberIdRequiredError(member_id)
        return self._add(member_id, request)

    def _add(self, member_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        member = Member(member_id, request)
        if not self._members:
            self.protocol_type = request.protocol_type
        self._members.add(member)
        self.leader_id = self.leader_id or member_id
        self._has_new_member = True
        return self._rejoin(member)

    def _join_again(self, member: Member, request: JoinRequest) -> asyncio.Future[Joined]:
        unchanged = member.protocols == request.protocols
        self._members.update(member, request)
        self._touch(member)
        # A member that asks again in its generation has missed the answer. A leader that does so
        # when all is settled wants a new assignment.
        if unchanged and (
            self.state is GroupState.COMPLETING_REBALANCE
            or (self.state is GroupState.STABLE and member.id != self.leader_id)
        ):
            return self._join_at_once(member, self._joined(member))
        return self._rejoin(member)

    def _replace_static(self, old_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        """Let the new process behind a static member step into its place (KIP-345)."""
        member = self._members.get(old_id, request.group_instance_id)
        member.refuse(FencedInstanceError(f"{member.group_instance_id} was started again"))
        self._members.remove(member)
        member.id = f"{request.group_instance_id}-{uuid.uuid4()}"
        self._members.add(member)
        was_leader = self.leader_id == old_id
        if was_leader:
            self.leader_id = member.id
        self._members.update(member, request)
        self._touch(member)
        if self.state is not GroupState.STABLE or (
            self._members.elect_protocol() != self.protocol_name
        ):
            return self._rejoin(member)
        joined = self._joined(member)
        if was_leader and request.may_skip_assignment:
            joined = joined._replace(skip_assignment=True)
        elif was_leader:
            # An older client that leads would assign anew: the answer names another leader.
            joined = joined._replace(leader_id=old_id, members=())
        assert self.leader_id is not None, "a stable group has a leader"
        waiting = member.begin_join()
        stored = partial(self._place_stored, member, waiting, joined)
        self._store.replace_member(old_id, member.row(self.id), self.leader_id, stored)
        return waiting

    def _place_stored(
        self,
        member: Member,
        waiting: asyncio.Future[Joined],
        joined: Joined,
        error: Exception | None,
    ) -> None:
        if member.join is not waiting or self.state is not GroupState.STABLE:
            return  # It was answered, or has joined what is being made.
        if error is not None:
            member.refuse(error)
        else:
            member.complete_join(joined)

    def _rejoin(self, member: Member) -> asyncio.Future[Joined]:
        waiting = member.begin_join()
        self._touch(member)
        self._rebalance()
        return waiting

    def _join_at_once(self, member: Member, joined: Joined) -> asyncio.Future[Joined]:
        assert joined.generation == self.generation, "the answer is about this generation"
        waiting = member.begin_join()
        member.complete_join(joined)
        return waiting

    def _take_promise(self, member_id: str) -> None:
        self._promised.pop(member_id).cancel()
        self._promised_held.set(len(self._promised) * _PROMISE_BYTES)
        if self.is_idle:
            self._became_idle(self)

    def _forget_promise(self, member_id: str) -> None:
        self._take_promise(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            self._begin_generation_if_complete()

    def _remove(self, member: Member) -> None:
        self._members.remove(member)
        if member.timer:
            member.timer.cancel()
        member.refuse(UnknownMemberError(f"{member.id} was removed from the group"))
        if member.id == self.leader_id:
            self.leader_id = self._members.first_id
        assert bool(self.leader_id) == bool(self._members), "a member leads"

    def _touch(self, member: Member) -> None:
        """Start the session timeout anew. The timer looks at the deadline only when it fires, so
        a heartbeat costs no timer.
        """
        assert self._members.has(member), "only a member has a session"
        member.deadline = self._clock.time() + member.session_timeout_s
        if member.timer is None:
            member.timer = self._clock.call_later(
                member.session_timeout_s, self._check_session, member
            )

    def _check_session(self, member: Member) -> None:
        member.timer = None
        remaining = member.deadline - self._clock.time()
        if member.is_waiting:
            self._touch(member)
        elif remaining > 0:
            member.timer = self._clock.call_later(remaining, self._check_session, member)
        else:
            self._remove(member)
            self._rebalance()

    # Generations

    def _rebalance(self) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._begin_generation_if_complete()
            return
        self._is_gathering = self.state is GroupState.EMPTY
        self._enter(GroupInput.REBALANCE)
        for member in self.members:
            member.refuse_sync(RebalanceInProgressError("a member came, went or changed"))
        self._awaited = list(self.members)
        if self._is_gathering:
            self._gather(self._rebalance_timeout_s())
        else:
            self._start_timer(self._rebalance_timeout_s(), self._drop_those_who_did_not_rejoin)
            self._begin_generation_if_complete()

    def _gather(self, remaining_s: float) -> None:
        """Wait for more members of a group that begins, as long as new ones come in each delay."""
        assert self._is_gathering, "only a group that was empty gathers"
        delay_s = min(self._settings.initial_rebalance_delay_ms / 1000, remaining_s)
        if delay_s > 0 and self._has_new_member:
            self._has_new_member = False
            self._start_timer(delay_s, self._gather, remaining_s - delay_s)
        else:
            self._is_gathering = False
            self._begin_generation()

    def _begin_generation_if_complete(self) -> None:
        if self._is_gathering or self._promised:
            return
        while self._awaited:
            member = self._awaited[-1]
            if member.join is None and self._members.has(member):
                return
            self._awaited.pop()
        self._begin_generation()

    def _drop_those_who_did_not_rejoin(self) -> None:
        for member in list(self.members):
            # A static member keeps its place until its session ends.
            if member.join is None and member.group_instance_id is None:
                self._remove(member)
        if self._members and not any(member.join for member in self.members):
            self._start_timer(self._rebalance_timeout_s(), self._drop_those_who_did_not_rejoin)
        else:
            self._begin_generation()

    def _begin_generation(self) -> None:
        self.generation += 1
        if not self._members:
            self.protocol_name = None
            self._enter(GroupInput.LOSE_ALL)
            if self._is_stored:
                self._is_stored = False
                self._store.forget(self.id)
            if self.is_idle:
                self._became_idle(self)
            return
        joined = [member for member in self.members if member.join]
        assert joined, "a generation begins when somebody has joined"
        if self.leader_id not in {member.id for member in joined}:
            self.leader_id = joined[0].id
        self.protocol_name = self._members.elect_protocol()
        self._enter(GroupInput.BEGIN_GENERATION)
        self._start_timer(self._rebalance_timeout_s(), self._drop_those_who_did_not_sync)
        for member in self.members:
            member.synced = False
            member.assignment = b""
        for member in joined:
            member.complete_join(self._joined(member))
            self._touch(member)

    def _drop_those_who_did_not_sync(self) -> None:
        for member in list(self.members):
            if not member.synced:
                self._remove(member)
        self._rebalance()

    def _assign(self, request: SyncRequest) -> None:
        assert request.member_id == self.leader_id, "the leader assigns"
        if self._assigned == self.generation:
            return  # It repeats itself while its assignment is stored.
        self._assigned = self.generation
        for member in self.members:
            member.assignment = bytes(request.assignments.get(member.id, b""))
        self._is_stored = True
        self._store.save(
            self._row(),
            [member.row(self.id) for member in self.members],
            partial(self._assignment_stored, self.generation),
        )

    def _assignment_stored(self, generation: int, error: Exception | None) -> None:
        if generation != self.generation or self.state is not GroupState.COMPLETING_REBALANCE:
            return  # The members were asked to join again meanwhile.
        if error is not None:
            for member in self.members:
                member.refuse_sync(error)
            self._rebalance()
            return
        self._enter(GroupInput.ASSIGN)
        for member in self.members:
            member.complete_sync(self._synced(member))

    def _enter(self, cause: GroupInput) -> None:
        self.state = TRANSITIONS[self.state, cause]
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _row(self) -> ClassicGroupRow:
        assert self.protocol_name is not None
        assert self.leader_id is not None
        return ClassicGroupRow(
            self.id, self.generation, self.protocol_type, self.protocol_name, self.leader_id
        )

    # Answers and checks

    def _joined(self, member: Member) -> Joined:
        assert self.protocol_name is not None
        assert self.leader_id is not None
        members = (
            tuple(
                MemberMetadata(each.id, each.group_instance_id, each.metadata(self.protocol_name))
                for each in self.members
            )
            if member.id == self.leader_id
            else ()
        )
        return Joined(
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader_id,
            member.id,
            members,
        )

    def _synced(self, member: Member) -> Synced:
        assert self.protocol_name is not None
        return Synced(self.protocol_type, self.protocol_name, member.assignment)

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGenerationError(
                f"the group is in generation {self.generation}, not {generation}"
            )

    def _rebalance_timeout_s(self) -> float:
        return max((member.rebalance_timeout_s for member in self.members), default=0)

    def _start_timer(self, delay_s: float, callback: Callable[..., object], *args: object) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_s, callback, *args)
