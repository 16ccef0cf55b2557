"""PARTITIONED_METADATA: how many partitions a topic has; 0 for a topic without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import (
    check_transient,
    create_topic,
    is_transient,
    parse_topic,
    without_partitions,
)
from penstock.pulsar.transactions import ASSIGN_TOPIC, COORDINATORS
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


def refuse(
    request: CommandPartitionedTopicMetadata, code: ServerError.ValueType, message: str
) -> BaseCommand:
    response = CommandPartitionedTopicMetadataResponse(
        request_id=request.request_id,
        response=CommandPartitionedTopicMetadataResponse.Failed,
        error=code,
        message=message,
    )
    return _answer(response)


@handles(BaseCommand.PARTITIONED_METADATA, refuse=refuse)
async def handle(request: CommandPartitionedTopicMetadata, call: Call) -> BaseCommand:
    response = CommandPartitionedTopicMetadataResponse(
        request_id=request.request_id,
        response=CommandPartitionedTopicMetadataResponse.Success,
        partitions=await _partitions(call, request),
    )
    return _answer(response)


def _answer(response: CommandPartitionedTopicMetadataResponse) -> BaseCommand:
    return BaseCommand(
        type=BaseCommand.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=response
    )


async def _partitions(call: Call, request: CommandPartitionedTopicMetadata) -> int:
    if is_transient(request.topic):
        check_transient(request.topic)
        return 0
    name, number = parse_topic(request.topic)
    if number is not None:
        return 0  # One partition of a topic has none of its own.
    if name == ASSIGN_TOPIC:
        return COORDINATORS
    settings = call.broker.settings
    topic = call.broker.topics.get(name)
    if topic is None:
        may_create = request.metadata_auto_creation_enabled
        if not (may_create and settings.auto_create_topics):
            raise RefusedError(ServerError.TopicNotFound, f"there is no topic {name.pulsar}")
        if settings.default_partitions == 1:
            return 0  # The topic comes into being with its first producer or consumer.
        topic = await create_topic(
            call.client, name, may_create=may_create, partitions=settings.default_partitions
        )
    if not topic.partitions:
        raise without_partitions(topic)
    return len(topic.partitions) if topic.partitioned else 0
