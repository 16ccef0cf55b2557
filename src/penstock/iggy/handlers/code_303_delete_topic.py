"""DELETE_TOPIC: the topic goes with its messages, groups and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_TOPIC, requests.TopicRequest)
async def delete_topic(request: requests.TopicRequest, call: Call) -> None:
    """Delete a topic for clients of every protocol."""
    topic = find_topic(call.broker, request.stream, request.topic)
    await call.broker.topics.delete(topic)
