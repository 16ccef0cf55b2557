"""DescribeConfigs: the configuration of topics, of the broker, of groups and of clients' metrics.

Versions 0-4. All keys are listed with their defaults, or those that were asked for; an empty list
asks for all, as in Kafka. An unknown topic is 3, an illegal name 17, another node than this one 42;
what has no name and other kinds of resources are 42 too. A group, or a subscription to metrics,
need not be there, as in Kafka. What is not a topic's is read-only.

Deviation: what a request asks for more than once is 42 each time. The answer to a small request
would have no bound otherwise, and clients ask for sets.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.config_entries import ConfigEntry, ConfigSource, topic_entries
from penstock.kafka.handlers.node_configs import client_metrics_entries, group_entries, node_entries
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once, check_node, topic_by_legal_name
from penstock.kafka.wire import ErrorCode, api
from penstock.kafka.wire.config_resources import ConfigResource
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse


@handles(api("DescribeConfigs"), 0, 4)
async def describe_configs(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    response = api("DescribeConfigs").response
    pace = Pace()
    times = await pace.counted(
        (each.resource_type, each.resource_name) for each in request.resources
    )
    results = []
    for resource in request.resources:
        result = response.DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        results.append(result)
        try:
            check_asked_once(times[resource.resource_type, resource.resource_name])
            entries = _entries(resource, call)
        except Exception as error:
            result.error_code, result.error_message = refusal(error)
        else:
            asked = resource.configuration_keys
            keys = await pace.counted(asked) if asked else None
            result.configs = await pace.each(
                [entry for entry in entries if keys is None or entry.name in keys],
                partial(_describe, resource.resource_type, request),
            )
        if pace.is_over():
            await pace.others()
    return response(results=results)


def _entries(
    resource: DescribeConfigsRequest.DescribeConfigsResource, call: Call
) -> list[ConfigEntry]:
    name = resource.resource_name
    if resource.resource_type == ConfigResource.TOPIC:
        return topic_entries(topic_by_legal_name(call.broker, name).config)
    if resource.resource_type == ConfigResource.BROKER:
        check_node(name, call.broker)
        # Without a name it asks for what was changed for all nodes while they run: nothing.
        return node_entries(call) if name else []
    if resource.resource_type == ConfigResource.GROUP:
        if not name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "the group has no name")
        return group_entries()
    if resource.resource_type == ConfigResource.CLIENT_METRICS:
        if not name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "the subscription has no name")
        return client_metrics_entries()
    raise RequestError(
        ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} are not served"
    )


def _describe(
    resource_type: int, request: DescribeConfigsRequest, entry: ConfigEntry
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    response = api("DescribeConfigs").response
    return response.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=resource_type != ConfigResource.TOPIC,
        is_default=entry.source is ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=[
            response.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.meaning if request.include_documentation else None,
    )
