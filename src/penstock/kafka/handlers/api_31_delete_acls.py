"""DeleteAcls: take rules of access away (KIP-140).

Versions 0-3. Each filter is SECURITY_DISABLED, as of a Kafka without an authorizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.access_lists import SECURITY_DISABLED
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DeleteAclsRequest, DeleteAclsResponse


@handles(api("DeleteAcls"), 0, 3)
async def delete_acls(request: DeleteAclsRequest, _call: Call) -> DeleteAclsResponse:
    response = api("DeleteAcls").response
    code, message = SECURITY_DISABLED
    results = await Pace().each(
        request.filters,
        lambda _: response.DeleteAclsFilterResult(error_code=code, error_message=message),
    )
    return response(filter_results=results)
