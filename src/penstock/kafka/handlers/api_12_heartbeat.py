"""Heartbeat: a member says that it is alive, and hears when it has to join again (27).

Versions 0-4; static members name their instance from version 3 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.handlers.registry import Call
    from penstock.kafka.wire.messages import HeartbeatRequest, HeartbeatResponse


@handles(api("Heartbeat"), 0, 4)
def heartbeat(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    response = api("Heartbeat").response
    try:
        call.broker.groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except Exception as error:
        return response(error_code=refusal(error).code)
    return response()
