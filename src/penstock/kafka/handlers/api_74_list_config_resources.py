"""ListConfigResources: what DescribeConfigs can be asked about (KIP-1142).

Versions 0-1. Version 0 is about client metrics only, of which there are none. No list of types
means all of them; one that there is not is UNSUPPORTED_VERSION. No group has a configuration of its
own, so none is listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.kafka.wire.config_resources import ConfigResource
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )

FIRST_VERSION_WITH_TYPES: Final = 1


@handles(api("ListConfigResources"), 0, 1)
async def list_config_resources(
    request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    response = api("ListConfigResources").response
    if call.version < FIRST_VERSION_WITH_TYPES:
        return response(config_resources=[])
    pace = Pace()
    types = set(await pace.counted(request.resource_types)) or set(ConfigResource)
    if not types <= set(ConfigResource):
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    resource = response.ConfigResource
    resources = []
    if ConfigResource.TOPIC in types:
        resources = await pace.each(
            tuple(call.broker.topics.all()),
            lambda topic: resource(
                resource_type=ConfigResource.TOPIC, resource_name=topic.name.kafka
            ),
        )
    for kind in types & {ConfigResource.BROKER, ConfigResource.BROKER_LOGGER}:
        for node_id in call.broker.cluster.node_ids:
            resources.append(resource(resource_type=kind, resource_name=str(node_id)))
    return response(config_resources=resources)
