"""Stable generations of Kafka's classic consumer groups, with their members."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import CLASSIC_GROUPS, CLASSIC_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.metadata.database import Parameters, Row
    from penstock.metadata.store import MetadataStore

_SELECT: Final = CLASSIC_GROUPS.select()
_SELECT_MEMBERS: Final = CLASSIC_MEMBERS.select()
_INSERT: Final = CLASSIC_GROUPS.insert()
_INSERT_MEMBER: Final = CLASSIC_MEMBERS.insert()
_SET_LEADER: Final = CLASSIC_GROUPS.update("leader", where=["id"])
_DELETE: Final = CLASSIC_GROUPS.delete(where=["id"])
_DELETE_MEMBER: Final = CLASSIC_MEMBERS.delete(where=["group_id", "member_id"])
_LENGTHS: Final = struct.Struct("<II")


class ClassicGroupRow(NamedTuple):
    """A generation whose members have their assignments."""

    id: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str


class ClassicMemberRow(NamedTuple):
    """A member of a generation; one that is not static has an empty `instance_id`.

    `protocols` are names of assignment strategies, each with the member's own bytes for it.
    """

    group_id: str
    member_id: str
    instance_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class ClassicGroupRepository:
    """Rows of `classic_groups` and `classic_members`. A group's members go with it."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[ClassicGroupRow]:
        """Read all groups; blocks. Raises MetadataError."""
        return [ClassicGroupRow(*row) for row in self._store.read(_SELECT)]

    def members(self) -> list[ClassicMemberRow]:
        """Read the members of all groups; blocks. Raises MetadataError."""
        return [_member(row) for row in self._store.read(_SELECT_MEMBERS)]

    async def save(self, group: ClassicGroupRow, members: Iterable[ClassicMemberRow]) -> None:
        """Store a generation over the one before, all or nothing. Raises MetadataError."""
        await self._store.write(
            Change(_DELETE, [{"id": group.id}]),
            Change(_INSERT, [group._asdict()]),
            Change(_INSERT_MEMBER, [_parameters(member) for member in members]),
        )

    async def replace_member(self, member_id: str, member: ClassicMemberRow, leader: str) -> None:
        """Store another member in a member's place, and who leads then. Raises MetadataError."""
        gone = {"group_id": member.group_id, "member_id": member_id}
        await self._store.write(
            Change(_DELETE_MEMBER, [gone]),
            Change(_INSERT_MEMBER, [_parameters(member)]),
            Change(_SET_LEADER, [{"id": member.group_id, "leader": leader}]),
        )

    async def delete(self, group_id: str) -> None:
        """Delete a group with its members. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [{"id": group_id}]))


def _member(row: Row) -> ClassicMemberRow:
    *head, packed, assignment = row
    return ClassicMemberRow._make([*head, tuple(_unpacked(packed)), assignment])


def _parameters(member: ClassicMemberRow) -> Parameters:
    parameters: dict[str, Any] = member._asdict()
    parameters["protocols"] = b"".join(_packed(member.protocols))
    return parameters


def _packed(protocols: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    for name, metadata in protocols:
        encoded = name.encode()
        yield _LENGTHS.pack(len(encoded), len(metadata))
        yield encoded
        yield metadata


def _unpacked(packed: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(packed):
        name_size, size = _LENGTHS.unpack_from(packed, at)
        at += _LENGTHS.size
        yield packed[at : at + name_size].decode(), packed[at + name_size : at + name_size + size]
        at += name_size + size
