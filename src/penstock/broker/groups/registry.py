"""All consumer groups of Kafka's classic protocol on this node, by their names.

A group with a stable generation outlasts the broker (`penstock.broker.groups.store`); what its
members have committed is in `penstock.broker.groups.offsets`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock import limits
from penstock.addresses import network_address
from penstock.broker.errors import (
    GroupFullError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    NonEmptyGroupError,
    UnknownGroupError,
    UnknownMemberError,
)
from penstock.broker.groups.census import IdleGroups
from penstock.broker.groups.classic import Group
from penstock.broker.groups.states import GroupState
from penstock.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.clock import Clock
    from penstock.broker.creations import Creations
    from penstock.broker.groups.census import Census
    from penstock.broker.groups.member import Joined, JoinRequest, Synced, SyncRequest
    from penstock.broker.groups.settings import GroupSettings
    from penstock.broker.groups.store import GroupStore
    from penstock.memory import Memory
    from penstock.metadata.classic_groups import ClassicGroupRow, ClassicMemberRow


class GroupRegistry:
    """Raises the errors of `Group`, and UnknownMemberError for a group that nobody is in."""

    def __init__(
        self,
        settings: GroupSettings,
        store: GroupStore,
        memory: Memory,
        creations: Creations,
        census: Census,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._memory = memory
        self._creations = creations
        self._census = census
        self._clock = clock
        self._groups: dict[str, Group] = {}
        self._makers: dict[str, str | None] = {}
        """The addresses of the clients by whom groups came into being; after a restart, of some
        member of each.
        """
        self._idle = IdleGroups()

    def restore(self, stored: Iterable[tuple[ClassicGroupRow, Iterable[ClassicMemberRow]]]) -> None:
        """Go on with the groups that the last run left, with sessions that begin now."""
        for row, members in stored:
            known = list(members)
            group = self._create(row.id, _address_of(known[0].client_host) if known else None)
            group.restore(row, known)
            self._idle.remove(row.id)

    def stop(self) -> None:
        """Let no more time pass: no session may be left, and none ends any more."""
        for group in self._groups.values():
            group.stop()

    def all(self) -> Iterable[Group]:
        return self._groups.values()

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def join(
        self, group_id: str, request: JoinRequest, address: str | None = None
    ) -> asyncio.Future[Joined]:
        """Join a group, which comes into being by it; `address` is that of the client.

        Raises InvalidGroupIdError, InvalidSessionTimeoutError, GroupsThrottledError and
        GroupFullError besides.
        """
        if not group_id:
            raise InvalidGroupIdError("the group has no name")
        shortest, longest = (
            self._settings.session_timeout_ms_min,
            self._settings.session_timeout_ms_max,
        )
        if not shortest <= request.session_timeout_ms <= longest:
            raise InvalidSessionTimeoutError(
                f"a session timeout is {shortest} to {longest} ms, not {request.session_timeout_ms}"
            )
        group = self._groups.get(group_id)
        if group is None:
            if request.member_id:
                raise UnknownMemberError(f"group {group_id} has no members")
            self._creations.take(address)
            self._make_room(address)
            group = self._create(group_id, address)
        try:
            return group.join(request)
        finally:
            if not group.is_idle:
                self._idle.remove(group_id)

    def sync(self, group_id: str, request: SyncRequest) -> asyncio.Future[Synced]:
        return self._group(group_id).sync(request)

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> None:
        self._group(group_id).heartbeat(member_id, group_instance_id, generation)

    def leave(self, group_id: str, member_id: str, group_instance_id: str | None) -> str:
        return self._group(group_id).leave(member_id, group_instance_id)

    def check_commit(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation: int
    ) -> None:
        """Check that offsets may be committed; a consumer that is in no group may use any name.

        Raises UnknownMemberError where a member of a group that nobody is in wants to.
        """
        group = self._groups.get(group_id)
        if group is not None:
            group.check_commit(member_id, group_instance_id, generation)
        elif generation >= 0:
            raise UnknownMemberError(f"group {group_id} has no members")

    def delete(self, group_id: str) -> None:
        """Forget a group without members; raises UnknownGroupError and NonEmptyGroupError."""
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownGroupError(f"no group is named {group_id}")
        if group.state is not GroupState.EMPTY:
            raise NonEmptyGroupError(f"group {group_id} has members")
        group.delete()
        del self._groups[group_id]
        self._idle.remove(group_id)
        self._census.remove(self._makers.pop(group_id))

    def _group(self, group_id: str) -> Group:
        if not group_id:
            raise InvalidGroupIdError("the group has no name")
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberError(f"group {group_id} has no members")
        return group

    def _make_room(self, address: str | None) -> None:
        """Forget groups without members where there are too many. Raises GroupFullError."""
        if self._census.is_full(address):
            self._forget_idle(address)
        self._census.check(address)
        if len(self._groups) >= limits.KAFKA_GROUPS:
            self._forget_idle(None)
        if len(self._groups) >= limits.KAFKA_GROUPS:
            raise GroupFullError(f"there are {limits.KAFKA_GROUPS} groups with members")

    def _forget_idle(self, address: str | None) -> None:
        """Forget some groups without members, of one address or of all."""
        for group_id in self._idle.take(address):
            if self._groups[group_id].is_idle:
                self.delete(group_id)

    def _create(self, group_id: str, address: str | None) -> Group:
        assert group_id not in self._groups, "a group is made once"
        clock = self._clock or Deadlines()
        group = Group(group_id, self._settings, clock, self._store, self._memory, self._became_idle)
        self._groups[group_id] = group
        self._makers[group_id] = address
        self._census.add(address)
        # Until somebody has joined it: the one for whom it is made may be refused.
        self._became_idle(group)
        return group

    def _became_idle(self, group: Group) -> None:
        self._idle.add(group.id, self._makers[group.id])


def _address_of(client_host: str) -> str | None:
    """Return the address that a member's connection had, by what is stored of it."""
    try:
        return network_address(client_host.removeprefix("/").strip("[]"))
    except ValueError:
        return None
