"""GET_STREAMS: all streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream, opened
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.iggy.server import Call
    from penstock.session import Answer


@handles(Command.GET_STREAMS, requests.Empty)
def get_streams(_request: requests.Empty, call: Call) -> Answer[replies.Streams]:
    """Describe every stream, without its topics."""
    broker = call.broker
    return opened(broker.topics.all(), lambda: _describe(broker))


def _describe(broker: Broker) -> replies.Streams:
    return replies.Streams([describe_stream(broker, each) for each in broker.namespaces.all()])
