"""GET_STREAM: a stream and its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream, describe_topics, measure
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_STREAM, requests.StreamRequest)
async def get_stream(request: requests.StreamRequest, call: Call) -> replies.StreamDetails:
    """Describe a stream."""
    stream = find_stream(call.broker, request.stream)
    topics = call.broker.topics.in_namespace(stream.name)
    await measure(call.broker, topics)
    pace = Pace()
    described = await describe_stream(call.broker, stream, pace)
    return replies.StreamDetails(described, await describe_topics(topics, pace))
