"""What several handlers do with committed offsets and with groups that have nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.groups.offsets import OffsetOwner
from penstock.broker.groups.states import GroupState

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

CONSUMER: Final = "consumer"
"""The protocol type of consumers, and of a group that is known by its offsets alone."""


class GroupSummary(NamedTuple):
    group_id: str
    protocol_type: str
    state: GroupState


def offset_owner(group_id: str) -> OffsetOwner:
    return OffsetOwner("kafka", group_id)


def has_offsets(broker: Broker, group_id: str) -> bool:
    return bool(broker.offsets.of_owner(offset_owner(group_id)))


def all_groups(broker: Broker) -> list[GroupSummary]:
    """Groups with members now or before, and those that are left with their offsets only."""
    groups = {
        group.id: GroupSummary(group.id, group.protocol_type, group.state)
        for group in broker.groups.all()
    }
    for owner in broker.offsets.owners("kafka"):
        groups.setdefault(owner.name, GroupSummary(owner.name, CONSUMER, GroupState.EMPTY))
    return list(groups.values())
