"""GET_STREAMS: all streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream, measure
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_STREAMS, requests.Empty)
async def get_streams(_request: requests.Empty, call: Call) -> replies.Streams:
    """Describe every stream, without its topics."""
    broker = call.broker
    await measure(broker, broker.topics.all())
    pace = Pace()
    return replies.Streams(
        await pace.each_awaited(
            broker.namespaces.all(), lambda each: describe_stream(broker, each, pace)
        )
    )
