"""The members of one group, and what they have in common: known without asking each of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import (
    FencedInstanceError,
    GroupFullError,
    InconsistentGroupProtocolError,
    NoMemoryError,
    UnknownMemberError,
)
from penstock.limits import GROUP_BYTES
from penstock.memory import Holding, text_bytes

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.broker.groups.member import JoinRequest, Member, Protocols
    from penstock.memory import Memory

_ENTRY_BYTES: Final = 128
_MEMBER_BYTES: Final = 2048
"""What a member is taken to need besides, of memory: its names, times and futures."""


class Roster:
    """Members by their ids, and static ones by their instances too."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._held = Holding(memory.groups)
        self._members: dict[str, Member] = {}
        self._static_ids: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    @property
    def all(self) -> Collection[Member]:
        return self._members.values()

    @property
    def first_id(self) -> str | None:
        """The member that has been in the group for longest."""
        return next(iter(self._members), None)

    def has(self, member: Member) -> bool:
        return self._members.get(member.id) is member

    def get(self, member_id: str, group_instance_id: str | None) -> Member:
        """Return a member. Raises FencedInstanceError and UnknownMemberError."""
        owner = self._static_ids.get(group_instance_id) if group_instance_id is not None else None
        if owner is not None and owner != member_id:
            raise FencedInstanceError(f"{group_instance_id} was started again")
        member = self._members.get(member_id)
        if member is None or (group_instance_id is not None and owner is None):
            raise UnknownMemberError(f"{member_id or 'a member without id'} is not in the group")
        return member

    def static_id(self, group_instance_id: str | None) -> str | None:
        """Return which member a process stands for."""
        return None if group_instance_id is None else self._static_ids.get(group_instance_id)

    def add(self, member: Member) -> None:
        assert member.id not in self._members, "a member id is given once"
        self._members[member.id] = member
        if member.group_instance_id is not None:
            self._static_ids[member.group_instance_id] = member.id
        self._count(member.protocols, 1)

    def remove(self, member: Member) -> None:
        del self._members[member.id]
        if member.group_instance_id is not None:
            del self._static_ids[member.group_instance_id]
        self._count(member.protocols, -1)

    def update(self, member: Member, request: JoinRequest) -> None:
        """Take over what a member says of itself this time."""
        assert self.has(member), "a member is updated"
        self._count(member.protocols, -1)
        member.accept(request)
        self._count(member.protocols, 1)

    def elect_protocol(self) -> str:
        """Choose by a vote of each member for its best protocol among those that all support."""
        votes = [
            next(name for name, _ in member.protocols if self._is_common(name))
            for member in self._members.values()
        ]
        return Counter(votes).most_common(1)[0][0]

    def check(self, request: JoinRequest, protocol_type: str) -> None:
        """Check what a member offers.

        Raises InconsistentGroupProtocolError where it is nothing that all others offer too, and
        GroupFullError where it is too much, and NoMemoryError where it is for now.
        """
        offered = {name for name, _ in request.protocols}
        if not offered or not request.protocol_type:
            raise InconsistentGroupProtocolError("a member needs a protocol type and a protocol")
        known = self._members.get(self.static_id(request.group_instance_id) or request.member_id)
        others = self._bytes - (_size(known.protocols) if known else 0)
        if others + _size(request.protocols) > GROUP_BYTES:
            raise GroupFullError(f"what members say of themselves is over {GROUP_BYTES} bytes")
        if not self._memory.has_room_for_groups:
            raise NoMemoryError("there is no memory for more members of groups")
        if not self._members:
            return
        if request.protocol_type != protocol_type or not any(map(self._is_common, offered)):
            raise InconsistentGroupProtocolError(
                f"no protocol in common with the members of type {protocol_type}"
            )

    def _is_common(self, protocol_name: str) -> bool:
        return self._supporters[protocol_name] == len(self._members)

    def _count(self, protocols: Protocols, step: int) -> None:
        self._bytes += step * _size(protocols)
        self._held.set(self._bytes + len(self._members) * _MEMBER_BYTES)
        for name in {name for name, _ in protocols}:
            self._supporters[name] += step
            if not self._supporters[name]:
                del self._supporters[name]


def _size(protocols: Protocols) -> int:
    """Return about how much memory protocols take; clients may send many of next to nothing."""
    return sum(_ENTRY_BYTES + text_bytes(name) + len(metadata) for name, metadata in protocols)
