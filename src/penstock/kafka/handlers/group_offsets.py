"""What several handlers do with committed offsets and with groups that have nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.groups.states import GroupState
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.limits import KAFKA_OFFSET_METADATA_BYTES

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.groups.classic import Group
    from penstock.kafka.wire.messages import OffsetCommitRequest, TxnOffsetCommitRequest
    from penstock.pace import Pace

CONSUMER: Final = "consumer"
"""The protocol type of consumers, and of a group that is known by its offsets alone."""


class GroupSummary(NamedTuple):
    group_id: str
    protocol_type: str
    state: GroupState


def offset_owner(group_id: str) -> OffsetOwner:
    return OffsetOwner("kafka", group_id)


def committed_offset(
    part: OffsetCommitRequest.OffsetCommitRequestPartition
    | TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition,
    committed_at_ms: int,
) -> CommittedOffset:
    """Return what a client commits. Raises RequestError where its own text is too long."""
    note = part.committed_metadata or ""
    if len(note.encode()) > KAFKA_OFFSET_METADATA_BYTES:
        raise RequestError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    return CommittedOffset(
        part.committed_offset, part.committed_leader_epoch, note, committed_at_ms
    )


def has_offsets(broker: Broker, group_id: str) -> bool:
    return bool(broker.offsets.of_owner(offset_owner(group_id)))


async def all_groups(broker: Broker, pace: Pace) -> list[GroupSummary]:
    """Groups with members now or before, and those that are left with their offsets only."""
    groups: dict[str, GroupSummary] = {}

    def with_members(group: Group) -> None:
        groups[group.id] = GroupSummary(group.id, group.protocol_type, group.state)

    def with_offsets(owner: OffsetOwner) -> None:
        groups.setdefault(owner.name, GroupSummary(owner.name, CONSUMER, GroupState.EMPTY))

    await pace.each(tuple(broker.groups.all()), with_members)
    await pace.each(broker.offsets.owners("kafka"), with_offsets)
    return list(groups.values())
