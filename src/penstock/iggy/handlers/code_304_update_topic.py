"""UPDATE_TOPIC: rename a topic, in all protocols, and change some of its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.topics.names import TopicName
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.topic_options import settings_of
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.UPDATE_TOPIC, requests.UpdateTopic)
async def update_topic(context: Context, request: requests.UpdateTopic) -> None:
    """Rename, and set what is given; what is not given stays."""
    topic = find_topic(context.broker, request.stream, request.topic)
    changes = settings_of(request.options, context.broker.settings, update=True)
    name = TopicName.from_iggy(topic.name.in_namespace.iggy, request.name)
    await context.broker.topics.update(topic, name, {**topic.config.explicit, **changes})
