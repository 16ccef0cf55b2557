"""DELETE_TOPIC: the topic goes with its messages, groups and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.DELETE_TOPIC, requests.TopicRequest)
async def delete_topic(context: Context, request: requests.TopicRequest) -> None:
    """Delete a topic for clients of every protocol."""
    topic = find_topic(context.broker, request.stream, request.topic)
    await context.broker.topics.delete(topic)
