"""DescribeConfigs: the configuration of topics and of the broker.

Versions 1-4. All keys are listed with their defaults, or those that were asked for. An unknown
topic is 3, an illegal name 17, another node than this one 42; other kinds of resources are 42 too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.topics.names import TopicName
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.config_entries import (
    ConfigEntry,
    ConfigSource,
    broker_entries,
    topic_entries,
)
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

TOPIC: Final = 2
BROKER: Final = 4


@handles(api("DescribeConfigs"), 1, 4)
async def describe_configs(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    response = api("DescribeConfigs").response
    pace = Pace()
    results = []
    for resource in request.resources:
        result = response.DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        results.append(result)
        try:
            entries = _entries(resource, call)
        except Exception as error:
            result.error_code, result.error_message = refusal(error)
        else:
            asked = resource.configuration_keys
            keys = None if asked is None else await pace.counted(asked)
            result.configs = [
                _describe(entry, resource.resource_type, request.include_synonyms)
                for entry in entries
                if keys is None or entry.name in keys
            ]
        if pace.is_over():
            await pace.others()
    return response(results=results)


def _entries(
    resource: DescribeConfigsRequest.DescribeConfigsResource, call: Call
) -> list[ConfigEntry]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        if call.broker.topics.by_kafka_name(name) is None:
            TopicName.from_kafka(name)
        return topic_entries(topic_by_name(call.broker, name).config)
    if resource.resource_type == BROKER:
        this_node = call.broker.cluster.this_node.node_id
        if name not in ("", str(this_node)):
            raise RequestError(ErrorCode.INVALID_REQUEST, f"there is no node {name}")
        # Without a name it asks for what was changed for all nodes while they run: nothing.
        return broker_entries(call.broker.settings, this_node) if name else []
    raise RequestError(
        ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} are not served"
    )


def _describe(
    entry: ConfigEntry, resource_type: int, include_synonyms: bool
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    response = api("DescribeConfigs").response
    synonyms = [(entry.value, entry.source)]
    if entry.source is ConfigSource.TOPIC:
        synonyms.append((entry.default, ConfigSource.DEFAULT))
    return response.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=resource_type == BROKER,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=[
            response.DescribeConfigsSynonym(name=entry.name, value=value, source=source)
            for value, source in (synonyms if include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=None,
    )
