"""JOIN_CONSUMER_GROUP: the connection becomes a member, and partitions are divided anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.JOIN_CONSUMER_GROUP, requests.ConsumerGroupRequest)
def join_consumer_group(request: requests.ConsumerGroupRequest, call: Call) -> None:
    """Let the connection in; joining twice changes nothing."""
    topic = find_topic(call.broker, request.stream, request.topic)
    call.client.join(call.broker.topic_groups.get(topic, request.group.value))
