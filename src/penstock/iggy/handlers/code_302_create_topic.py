"""CREATE_TOPIC: a topic of a stream, for clients of every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.topics.names import TopicName
from penstock.iggy.descriptions import describe_topic_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import check_partitions, find_stream
from penstock.iggy.topic_options import check_size, settings_of
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.CREATE_TOPIC, requests.CreateTopic)
async def create_topic(request: requests.CreateTopic, call: Call) -> replies.TopicDetails:
    """Make a topic that lasts; its number is the lowest free one of its stream.

    It may have no partition, until some are created.
    """
    config = settings_of(request.options, call.broker.settings)
    check_partitions(request.partitions_count, at_least=0)
    check_size(config, call.broker.settings)
    stream = find_stream(call.broker, request.stream)
    name = TopicName.from_iggy(stream.name.iggy, request.name)
    topic = await call.broker.topics.create(
        name,
        request.partitions_count,
        config=config,
        address=call.client.address,
        iggy_topic_id=request.number,
        stream_id=stream.stream_id,
    )
    return await describe_topic_fully(topic)
