"""SyncGroup: the leader brings the assignments, every member gets its own.

Versions 0-5; version 5 names the protocol, and another one than the group runs, or none, is refused
(23).

The answer waits for the leader. A member that the leader left out gets an empty assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import GroupFullError
from penstock.broker.groups.member import SyncRequest
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import GROUP_BYTES, GROUP_MEMBERS

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL: Final = 5


@handles(api("SyncGroup"), 0, 5)
async def sync_group(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    response = api("SyncGroup").response
    try:
        _check_named(request, call)
        waiting = call.broker.groups.sync(request.group_id, _sync_request(request))
        with call.client.waiting(waiting.cancel):
            synced = await waiting
    except Exception as error:
        return response(error_code=refusal(error).code)
    return response(
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )


def _check_named(request: SyncGroupRequest, call: Call) -> None:
    is_named = request.protocol_type is not None and request.protocol_name is not None
    if call.version >= FIRST_VERSION_WITH_PROTOCOL and not is_named:
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no protocol is named")


def _sync_request(request: SyncGroupRequest) -> SyncRequest:
    if len(request.assignments) > GROUP_MEMBERS:
        raise GroupFullError(f"an assignment is for at most {GROUP_MEMBERS} members")
    # Before it is copied: the group would refuse it with the copy in hand.
    if sum(len(each.assignment) for each in request.assignments) > GROUP_BYTES:
        raise GroupFullError(f"an assignment has at most {GROUP_BYTES} bytes")
    return SyncRequest(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {each.member_id: bytes(each.assignment) for each in request.assignments},
    )
