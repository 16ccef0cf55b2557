"""DescribeGroups: state, protocol and members of groups.

Versions 0-6. A group that is not there is Dead without an error up to version 5, and
GROUP_ID_NOT_FOUND from version 6 on; one with nothing but committed offsets is Empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.groups.states import GroupState
from penstock.kafka.handlers.group_offsets import CONSUMER, has_offsets
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import ALL_GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.groups.classic import Group
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeGroupsRequest, DescribeGroupsResponse

FIRST_VERSION_WITH_NOT_FOUND: Final = 6


@handles(api("DescribeGroups"), 0, 6)
async def describe_groups(request: DescribeGroupsRequest, call: Call) -> DescribeGroupsResponse:
    pace = Pace()
    operations = (
        ALL_GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_NOT_ASKED
    )

    async def described(group_id: str) -> DescribeGroupsResponse.DescribedGroup:
        group = await _describe(group_id, call, pace)
        if group.error_code == ErrorCode.NONE:
            group.authorized_operations = operations
        return group

    groups = await pace.each_awaited(request.groups, described)
    return api("DescribeGroups").response(groups=groups)


async def _describe(group_id: str, call: Call, pace: Pace) -> DescribeGroupsResponse.DescribedGroup:
    response = api("DescribeGroups").response
    group = call.broker.groups.get(group_id)
    if group is not None:
        return response.DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol_name or "",
            members=await _members(group, pace),
        )
    if has_offsets(call.broker, group_id):
        return response.DescribedGroup(
            group_id=group_id, group_state=GroupState.EMPTY.value, protocol_type=CONSUMER
        )
    missing = response.DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if call.version >= FIRST_VERSION_WITH_NOT_FOUND:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = f"no group is named {group_id}"
    return missing


async def _members(group: Group, pace: Pace) -> list[DescribeGroupsResponse.DescribedGroupMember]:
    member_type = api("DescribeGroups").response.DescribedGroupMember
    return await pace.each(
        tuple(group.members),
        lambda member: member_type(
            member_id=member.id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=group.metadata(member),
            member_assignment=member.assignment,
        ),
    )
