"""LeaveGroup: members go, and the others share their partitions.

Versions 0-5; version 3 on lets several go at once and answers each by itself, and a static member
may be named by its instance with an empty member id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import ACCEPTED, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import LeaveGroupRequest, LeaveGroupResponse

FIRST_VERSION_WITH_MANY: Final = 3


@handles(api("LeaveGroup"), 0, 5)
async def leave_group(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    response = api("LeaveGroup").response
    if call.version < FIRST_VERSION_WITH_MANY:
        return response(error_code=_leave(request.group_id, request.member_id, None, call))
    results = await Pace().each(
        request.members,
        lambda member: response.MemberResponse(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=_leave(request.group_id, member.member_id, member.group_instance_id, call),
        ),
    )
    # A group that can't be at all is the whole request's error.
    whole = ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID
    return response(error_code=whole, members=results)


def _leave(group_id: str, member_id: str, instance_id: str | None, call: Call) -> ErrorCode:
    try:
        call.broker.groups.leave(group_id, member_id, instance_id)
    except Exception as error:
        return refusal(error).code
    return ACCEPTED.code
