"""LEAVE_CONSUMER_GROUP: the other members take over its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.LEAVE_CONSUMER_GROUP, requests.ConsumerGroupRequest)
def leave_consumer_group(request: requests.ConsumerGroupRequest, call: Call) -> None:
    """Let the connection go."""
    topic = find_topic(call.broker, request.stream, request.topic)
    call.broker.topic_groups.get(topic, request.group.value).leave(call.client)
