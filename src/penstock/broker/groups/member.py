"""One member of a consumer group, and what is asked and answered to become one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.errors import RebalanceInProgressError
from penstock.metadata.classic_groups import ClassicMemberRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.broker.clock import Timer

Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignment strategies, the best first, each with the member's own bytes for it."""


class JoinRequest(NamedTuple):
    """What a client says to join. Times are milliseconds; no member id yet is an empty one."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id_required: bool = False
    """Hand out the id and have the client join again with it (KIP-394, JoinGroup v4)."""
    may_skip_assignment: bool = False
    """The client understands SkipAssignment (KIP-814, JoinGroup v9)."""


class MemberMetadata(NamedTuple):
    """What the leader learns of each member: its bytes for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """A member's place in a generation; only the leader gets the list of members."""

    generation: int
    protocol_type: str
    protocol_name: str
    leader_id: str
    member_id: str
    members: Sequence[MemberMetadata] = ()
    skip_assignment: bool = False


class SyncRequest(NamedTuple):
    """A member asks for its assignment; the leader brings everybody's."""

    member_id: str
    group_instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Synced(NamedTuple):
    protocol_type: str
    protocol_name: str
    assignment: bytes


class Member:
    """A member as the group knows it; `join` and `sync` are the answers it waits for."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline",
        "group_instance_id",
        "id",
        "join",
        "protocols",
        "rebalance_timeout_s",
        "session_timeout_s",
        "sync",
        "synced",
        "timer",
    )

    def __init__(self, member_id: str, request: JoinRequest) -> None:
        self.id = member_id
        self.group_instance_id = request.group_instance_id
        self.assignment = b""
        self.join: asyncio.Future[Joined] | None = None
        """Set from the member's JoinGroup until the generation begins: it has rejoined."""
        self.sync: asyncio.Future[Synced] | None = None
        self.synced = False
        """It has asked for its assignment in this generation."""
        self.deadline = 0.0
        self.timer: Timer | None = None
        self.accept(request)

    def accept(self, request: JoinRequest) -> None:
        """Take over what the member says of itself this time."""
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.protocols = request.protocols
        self.session_timeout_s = request.session_timeout_ms / 1000
        self.rebalance_timeout_s = request.rebalance_timeout_ms / 1000

    @classmethod
    def restored(cls, row: ClassicMemberRow) -> Member:
        """Make the member that `row` was made of; its session begins anew."""
        member = cls(
            row.member_id,
            JoinRequest(
                row.member_id,
                row.instance_id or None,
                row.client_id,
                row.client_host,
                "",
                row.protocols,
                row.session_timeout_ms,
                row.rebalance_timeout_ms,
            ),
        )
        member.assignment = row.assignment
        member.synced = True
        return member

    def row(self, group_id: str) -> ClassicMemberRow:
        """Return what is kept of the member."""
        return ClassicMemberRow(
            group_id,
            self.id,
            self.group_instance_id or "",
            self.client_id,
            self.client_host,
            round(self.session_timeout_s * 1000),
            round(self.rebalance_timeout_s * 1000),
            self.protocols,
            self.assignment,
        )

    @property
    def is_waiting(self) -> bool:
        """Whether a request of the member is parked here, which proves it alive.

        When its connection goes, the future is cancelled, and the session timeout counts again.
        """
        return any(future and not future.done() for future in (self.join, self.sync))

    def metadata(self, protocol_name: str | None) -> bytes:
        return dict(self.protocols).get(protocol_name or "", b"")

    def begin_join(self) -> asyncio.Future[Joined]:
        # The request before may belong to a dead connection.
        self.refuse(RebalanceInProgressError("the member joined again"))
        assert self.join is None, "each request has a future of its own"
        self.join = asyncio.get_running_loop().create_future()
        return self.join

    def complete_join(self, joined: Joined) -> None:
        waiting, self.join = self.join, None
        if waiting and not waiting.done():
            waiting.set_result(joined)

    def begin_sync(self) -> asyncio.Future[Synced]:
        self.refuse_sync(RebalanceInProgressError("the member synchronised again"))
        assert self.sync is None, "each request has a future of its own"
        self.sync = asyncio.get_running_loop().create_future()
        return self.sync

    def complete_sync(self, synced: Synced) -> None:
        waiting, self.sync = self.sync, None
        if waiting and not waiting.done():
            waiting.set_result(synced)

    def refuse_sync(self, error: Exception) -> None:
        waiting, self.sync = self.sync, None
        if waiting and not waiting.done():
            waiting.set_exception(error)

    def refuse(self, error: Exception) -> None:
        """Answer whatever the member waits for with an error."""
        self.refuse_sync(error)
        waiting, self.join = self.join, None
        if waiting and not waiting.done():
            waiting.set_exception(error)
