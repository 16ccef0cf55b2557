"""FindCoordinator: which node keeps a group, or a transaction.

Versions 0-6; version 4 on asks for several keys at once.

There is one node, so it is the answer for groups (key type 0) and for transactions (1), whose first
request will say that they are not served. Share groups (2) and unknown types are INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_MANY: Final = 4
GROUP, TRANSACTION = 0, 1


@handles(api("FindCoordinator"), 0, 6)
async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    response = api("FindCoordinator").response
    if call.version < FIRST_VERSION_WITH_MANY:
        place = _place(request.key_type, request.key, call)
        return response(
            error_code=place.error_code,
            error_message=place.error_message,
            node_id=place.node_id,
            host=place.host,
            port=place.port,
        )
    places = await Pace().each(
        request.coordinator_keys, lambda key: _place(request.key_type, key, call)
    )
    return response(coordinators=places)


def _place(key_type: int, key: str, call: Call) -> FindCoordinatorResponse.Coordinator:
    coordinator_type = api("FindCoordinator").response.Coordinator
    if key_type not in (GROUP, TRANSACTION):
        return coordinator_type(
            key=key,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"key type {key_type} is not served",
            node_id=-1,
            port=-1,
        )
    node_id = call.broker.cluster.coordinator_of(key).node_id
    host, port = call.client.transport.local_address
    return coordinator_type(key=key, node_id=node_id, host=host, port=port)
