"""WATCH_TOPIC_LIST_CLOSE: always granted, even to a watcher that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import success
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandWatchTopicListClose

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.WATCH_TOPIC_LIST_CLOSE)
def handle(request: CommandWatchTopicListClose, call: Call) -> BaseCommand:
    call.client.close_watcher(request.watcher_id)
    return success(request.request_id)
