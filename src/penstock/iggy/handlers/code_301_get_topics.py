"""GET_TOPICS: all topics of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_topic
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import IggyError

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_TOPICS, requests.StreamRequest)
async def get_topics(context: Context, request: requests.StreamRequest) -> replies.Topics:
    """Describe every topic, without its partitions; none where there is no stream."""
    try:
        stream = find_stream(context.broker, request.stream)
    except IggyError:
        return replies.Topics([])
    topics = context.broker.topics.in_namespace(stream.name)
    in_order = sorted(topics, key=lambda topic: topic.iggy_topic_id)
    return replies.Topics([describe_topic(topic) for topic in in_order])
