"""GET_TOPICS: all topics of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_topic, opened
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call
    from penstock.session import Answer


@handles(Command.GET_TOPICS, requests.StreamRequest)
def get_topics(request: requests.StreamRequest, call: Call) -> Answer[replies.Topics]:
    """Describe every topic, without its partitions; none where there is no stream."""
    try:
        stream = find_stream(call.broker, request.stream)
    except IggyError:
        return replies.Topics([])
    topics = call.broker.topics.in_namespace(stream.name)
    in_order = sorted(topics, key=lambda topic: topic.iggy_topic_id)
    return opened(in_order, lambda: replies.Topics([describe_topic(each) for each in in_order]))
