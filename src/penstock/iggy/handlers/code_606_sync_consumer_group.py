"""SYNC_CONSUMER_GROUP: which partitions the connection shall read; asked every five seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.SYNC_CONSUMER_GROUP, requests.ConsumerGroupRequest)
def sync_consumer_group(
    request: requests.ConsumerGroupRequest, call: Call
) -> replies.Assignment | None:
    """Tell the partitions and their generation; nothing to one who is not a member."""
    topic = find_topic(call.broker, request.stream, request.topic)
    group = call.broker.topic_groups.get(topic, request.group.value)
    partitions = group.sync(call.client)
    return None if partitions is None else replies.Assignment(group.generation, partitions)
