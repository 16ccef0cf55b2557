"""CREATE_CONSUMER_GROUP: a group belongs to one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.descriptions import describe_group_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call

_LARGEST_NUMBER: Final = (1 << 31) - 1
"""Of those that clients choose: the broker goes on counting from there."""


@handles(Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup)
async def create_consumer_group(
    request: requests.CreateConsumerGroup, call: Call
) -> replies.ConsumerGroupDetails:
    """Make a group that lasts; its number is the next of its topic."""
    topic = find_topic(call.broker, request.stream, request.topic)
    groups = call.broker.topic_groups
    if request.number is not None and request.number > _LARGEST_NUMBER:
        raise IggyError(ErrorCode.INVALID_CONSUMER_GROUP_ID, str(request.number))
    group = await groups.create(topic, request.name, call.client.address, request.number)
    return await describe_group_fully(group)
