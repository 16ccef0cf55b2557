"""GET_CONSUMER_GROUP: a group and who reads what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_group_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CONSUMER_GROUP, requests.ConsumerGroupRequest)
async def get_consumer_group(
    request: requests.ConsumerGroupRequest, call: Call
) -> replies.ConsumerGroupDetails:
    """Describe a group."""
    topic = find_topic(call.broker, request.stream, request.topic)
    group = call.broker.topic_groups.get(topic, request.group.value)
    return await describe_group_fully(group)
