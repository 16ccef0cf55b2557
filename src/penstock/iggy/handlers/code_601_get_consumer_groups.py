"""GET_CONSUMER_GROUPS: all groups of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_group
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CONSUMER_GROUPS, requests.TopicRequest)
async def get_consumer_groups(request: requests.TopicRequest, call: Call) -> replies.ConsumerGroups:
    """Describe every group, without its members."""
    topic = find_topic(call.broker, request.stream, request.topic)
    groups = call.broker.topic_groups.of_topic(topic)
    return replies.ConsumerGroups(await Pace().each(groups, describe_group))
