"""Groups as a Kafka broker describes them, whichever of the two protocols their members use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.kafka.wire import consumer_protocol

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import ConsumerGroupDescribeResponse, DescribeGroupsResponse


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str


class GroupMember(NamedTuple):
    member_id: str
    client_id: str
    client_host: str
    assigned: Mapping[str, Sequence[int]]
    """Partitions by topic; empty for a group that is not one of consumers."""


class GroupDescription(NamedTuple):
    group_id: str
    state: str
    protocol: str
    members: Sequence[GroupMember]


def of_classic(group: DescribeGroupsResponse.DescribedGroup) -> GroupDescription:
    """A group whose members divide the partitions among themselves."""
    is_of_consumers = group.protocol_type == "consumer"
    members = [
        GroupMember(
            each.member_id,
            each.client_id,
            each.client_host,
            _assigned(each.member_assignment) if is_of_consumers else {},
        )
        for each in group.members
    ]
    return GroupDescription(group.group_id, group.group_state, group.protocol_data, members)


def of_consumers(group: ConsumerGroupDescribeResponse.DescribedGroup) -> GroupDescription:
    """A group of KIP-848, whose broker divides the partitions."""
    members = [
        GroupMember(
            each.member_id,
            each.client_id,
            each.client_host,
            {of.topic_name: of.partitions for of in each.assignment.topic_partitions},
        )
        for each in group.members
    ]
    return GroupDescription(group.group_id, group.group_state, group.assignor_name, members)


def _assigned(assignment: bytes) -> dict[str, list[int]]:
    if not assignment:
        return {}
    message = consumer_protocol.decode(consumer_protocol.assignment_type(), assignment)
    return {each.topic: list(each.partitions) for each in message.assigned_partitions}
