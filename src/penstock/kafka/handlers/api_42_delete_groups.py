"""DeleteGroups: forget groups without members, with their committed offsets.

Versions 0-2. 68 while a group has members, 69 for one that is not there, 24 for one without a name.
A client that was given a member id and has not joined with it yet is no member: it is asked to join
anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import ACCEPTED, refusal
from penstock.kafka.handlers.group_offsets import has_offsets, offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse


@handles(api("DeleteGroups"), 0, 2)
async def delete_groups(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    response = api("DeleteGroups").response

    async def deleted(group_id: str) -> DeleteGroupsResponse.DeletableGroupResult:
        code = await _delete(group_id, call)
        return response.DeletableGroupResult(group_id=group_id, error_code=code)

    return response(results=await Pace().each_awaited(request.groups_names, deleted))


async def _delete(group_id: str, call: Call) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    try:
        # A group that lost its members with the last run is there by its offsets only.
        if call.broker.groups.get(group_id) is not None or not has_offsets(call.broker, group_id):
            call.broker.groups.delete(group_id)
        await call.broker.offsets.delete(offset_owner(group_id))
    except Exception as error:
        return refusal(error).code
    return ACCEPTED.code
