"""A stage for consumer groups: a clock that the test turns, and short names for requests."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.broker.creations import group_creations
from penstock.broker.groups.census import Census
from penstock.broker.groups.classic import Group
from penstock.broker.groups.member import Joined, JoinRequest, Protocols, Synced, SyncRequest
from penstock.broker.groups.registry import GroupRegistry
from penstock.broker.groups.settings import GroupSettings
from penstock.broker.groups.states import GroupState
from penstock.memory import Memory

if TYPE_CHECKING:
    from penstock.broker.groups.store import Then
from penstock.metadata.classic_groups import ClassicGroupRow, ClassicMemberRow


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


class MemoryStore:
    """Keeps groups at once, or when `answer` is called where `waits` is set."""

    def __init__(self) -> None:
        self.waits = False
        self.groups: dict[str, tuple[ClassicGroupRow, dict[str, ClassicMemberRow]]] = {}
        self._unanswered: list[Then] = []

    def save(self, group: ClassicGroupRow, members: Iterable[ClassicMemberRow], then: Then) -> None:
        self.groups[group.id] = group, {member.member_id: member for member in members}
        self._stored(then)

    def replace_member(
        self, member_id: str, member: ClassicMemberRow, leader: str, then: Then
    ) -> None:
        group, members = self.groups[member.group_id]
        del members[member_id]
        members[member.member_id] = member
        self.groups[group.id] = group._replace(leader=leader), members
        self._stored(then)

    def forget(self, group_id: str) -> None:
        del self.groups[group_id]

    def answer(self, error: Exception | None = None) -> None:
        unanswered, self._unanswered = self._unanswered, []
        for then in unanswered:
            then(error)

    def _stored(self, then: Then) -> None:
        self._unanswered.append(then)
        if not self.waits:
            self.answer()


class House:
    """Groups, their clock, and short names for what tests do with them."""

    def __init__(self, **options: int) -> None:
        self._options = options
        self.clock = VirtualClock()
        self.store = MemoryStore()
        self.groups = self._registry()

    def restart(self) -> None:
        """Leave nothing but what was stored."""
        self.groups.stop()
        self.clock = VirtualClock()
        self.groups = self._registry()
        self.groups.restore(
            [(row, members.values()) for row, members in self.store.groups.values()]
        )

    def _registry(self) -> GroupRegistry:
        settings, creations = GroupSettings(**self._options), group_creations()
        return GroupRegistry(settings, self.store, Memory(), creations, Census(), self.clock)

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
