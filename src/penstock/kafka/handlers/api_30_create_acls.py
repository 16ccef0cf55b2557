"""CreateAcls: make rules of access (KIP-140).

Versions 0-3. Each is SECURITY_DISABLED, as of a Kafka without an authorizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.access_lists import SECURITY_DISABLED
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import CreateAclsRequest, CreateAclsResponse


@handles(api("CreateAcls"), 0, 3)
async def create_acls(request: CreateAclsRequest, _call: Call) -> CreateAclsResponse:
    response = api("CreateAcls").response
    code, message = SECURITY_DISABLED
    results = await Pace().each(
        request.creations,
        lambda _: response.AclCreationResult(error_code=code, error_message=message),
    )
    return response(results=results)
