"""PURGE_TOPIC: give up all messages of a topic, and the offsets that its consumers stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.giving_up import purge
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.offsets import OFFSET_KINDS
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.PURGE_TOPIC, requests.TopicRequest)
async def purge_topic(request: requests.TopicRequest, call: Call) -> None:
    """Return when the topic is empty, and stays so; its next message has the next offset."""
    topic = find_topic(call.broker, request.stream, request.topic)
    await purge(call.broker, [topic], OFFSET_KINDS)
