"""GET_STREAMS: all streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_STREAMS, requests.Empty)
def get_streams(_request: requests.Empty, call: Call) -> replies.Streams:
    """Describe every stream, without its topics."""
    streams = call.broker.namespaces.all()
    return replies.Streams([describe_stream(call.broker, stream) for stream in streams])
