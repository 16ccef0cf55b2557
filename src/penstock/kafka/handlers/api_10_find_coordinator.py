"""FindCoordinator: which node keeps a group, or a transaction.

Versions 0-6; version 4 on asks for several keys at once.

There is one node, so it is the answer for groups (key type 0) and for transactions (1), whose first
request will say that they are not served. Share groups (2) and unknown types are INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, Struct, api

if TYPE_CHECKING:
    from penstock.kafka.handlers.registry import Call

FIRST_VERSION_WITH_MANY: Final = 4
GROUP, TRANSACTION = 0, 1


@handles("FindCoordinator", 0, 6)
def find_coordinator(request: Struct, call: Call) -> Struct:
    response = api("FindCoordinator").response
    if call.version < FIRST_VERSION_WITH_MANY:
        return response(**_place(request.key_type, request.key, call))
    return response(
        coordinators=[
            response.Coordinator(key=key, **_place(request.key_type, key, call))
            for key in request.coordinator_keys
        ]
    )


def _place(key_type: int, key: str, call: Call) -> dict[str, Any]:
    if key_type not in (GROUP, TRANSACTION):
        return {
            "error_code": ErrorCode.INVALID_REQUEST,
            "error_message": f"key type {key_type} is not served",
            "node_id": -1,
            "port": -1,
        }
    host, port = call.client.transport.local_address
    return {"node_id": call.broker.cluster.coordinator_of(key).node_id, "host": host, "port": port}
