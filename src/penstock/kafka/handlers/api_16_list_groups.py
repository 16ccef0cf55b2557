"""ListGroups: all groups, filtered by state (version 4 on) and type (version 5 on).

Versions 0-5. Names in filters are compared without case. All groups are of type classic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers.group_offsets import all_groups
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ListGroupsRequest, ListGroupsResponse

CLASSIC: Final = "classic"


@handles(api("ListGroups"), 0, 5)
async def list_groups(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    response = api("ListGroups").response
    pace = Pace()
    states = await pace.counted(map(str.lower, request.states_filter))
    types = await pace.counted(map(str.lower, request.types_filter))
    if types and CLASSIC not in types:
        return response()
    groups = []
    for group in await all_groups(call.broker, pace):
        if not states or group.state.value.lower() in states:
            groups.append(
                response.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state.value,
                    group_type=CLASSIC,
                )
            )
        if pace.is_over():
            await pace.others()
    return response(groups=groups)
