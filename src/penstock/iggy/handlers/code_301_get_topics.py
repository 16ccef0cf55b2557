"""GET_TOPICS: all topics of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_topics, measure
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_TOPICS, requests.StreamRequest)
async def get_topics(request: requests.StreamRequest, call: Call) -> replies.Topics:
    """Describe every topic, without its partitions."""
    stream = find_stream(call.broker, request.stream)
    topics = call.broker.topics.in_namespace(stream.name)
    await measure(call.broker, topics)
    return replies.Topics(await describe_topics(topics, Pace()))
