"""GET_TOPIC: a topic and its partitions; clients ask it for the number of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_topic_fully, measure
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_TOPIC, requests.TopicRequest)
async def get_topic(request: requests.TopicRequest, call: Call) -> replies.TopicDetails:
    """Describe a topic."""
    topic = find_topic(call.broker, request.stream, request.topic)
    await measure(call.broker, [topic])
    return await describe_topic_fully(topic)
