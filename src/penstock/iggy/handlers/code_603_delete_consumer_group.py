"""DELETE_CONSUMER_GROUP: the group goes with the offsets that it stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.offsets import group_owner
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_CONSUMER_GROUP, requests.ConsumerGroupRequest)
async def delete_consumer_group(request: requests.ConsumerGroupRequest, call: Call) -> None:
    """Delete a group of one topic; a group of the same name elsewhere stays."""
    topic = find_topic(call.broker, request.stream, request.topic)
    group = call.broker.topic_groups.get(topic, request.group.value)
    await call.broker.topic_groups.delete(group)
    partition_ids = [partition.id for partition in topic.partitions]
    await call.broker.offsets.delete(group_owner(group.name), partition_ids)
