"""UPDATE_TOPIC: rename a topic, in all protocols, and change some of its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.topic_options import check_size, settings_of
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.broker.topics.config import Explicit, TopicConfig
    from penstock.iggy.server import Call


@handles(Command.UPDATE_TOPIC, requests.UpdateTopic)
async def update_topic(request: requests.UpdateTopic, call: Call) -> None:
    """Rename, and set what is given; what is not given stays."""
    changes = settings_of(request.options, call.broker.settings, update=True)
    topic = find_topic(call.broker, request.stream, request.topic)
    if "retention_topic_bytes" in changes:
        check_size({**topic.config.explicit, **changes}, call.broker.settings)

    def changed(config: TopicConfig) -> Explicit:
        return {**config.explicit, **changes}

    await call.broker.topics.configure(topic, changed, name=request.name)
