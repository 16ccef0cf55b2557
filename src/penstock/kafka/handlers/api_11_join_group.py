"""JoinGroup: become a member of the next generation of a group.

Versions 0-9. The rules are those of `penstock.broker.groups.classic`.

* The answer waits until the generation begins.
* Version 4 on gets its member id first (79) unless it is a static member; version 5 on has
  those; version 9 on may be asked to skip the assignment.
* Before version 1 the rebalance timeout is the session timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import GroupFullError, MemberIdRequiredError
from penstock.broker.groups.member import JoinRequest
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.limits import GROUP_BYTES, KAFKA_MEMBER_PROTOCOLS
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_REQUIRED_ID: Final = 4
FIRST_VERSION_WITH_NULL_PROTOCOL: Final = 7
FIRST_VERSION_WITH_SKIP: Final = 9


@handles(api("JoinGroup"), 0, 9)
async def join_group(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    response = api("JoinGroup").response
    try:
        waiting = call.broker.groups.join(
            request.group_id, _join_request(request, call), call.client.address
        )
        with call.client.waiting(waiting.cancel):
            joined = await waiting
    except Exception as error:
        member_id = error.member_id if isinstance(error, MemberIdRequiredError) else None
        return response(
            error_code=refusal(error).code,
            protocol_name=None if call.version >= FIRST_VERSION_WITH_NULL_PROTOCOL else "",
            member_id=member_id or request.member_id,
        )
    return response(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=await Pace().each(
            joined.members,
            lambda member: response.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            ),
        ),
    )


def _join_request(request: JoinGroupRequest, call: Call) -> JoinRequest:
    if len(request.protocols) > KAFKA_MEMBER_PROTOCOLS:
        raise GroupFullError(f"a member offers at most {KAFKA_MEMBER_PROTOCOLS} protocols")
    # Before it is copied: the group would refuse it with the copy in hand.
    if sum(len(protocol.metadata) for protocol in request.protocols) > GROUP_BYTES:
        raise GroupFullError(f"what members say of themselves is over {GROUP_BYTES} bytes")
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if rebalance_timeout_ms < 0:
        rebalance_timeout_ms = request.session_timeout_ms
    return JoinRequest(
        request.member_id,
        request.group_instance_id,
        call.client_id,
        "/" + call.client.transport.peer.rpartition(":")[0],
        request.protocol_type,
        tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        request.session_timeout_ms,
        rebalance_timeout_ms,
        member_id_required=call.version >= FIRST_VERSION_WITH_REQUIRED_ID,
        may_skip_assignment=call.version >= FIRST_VERSION_WITH_SKIP,
    )
