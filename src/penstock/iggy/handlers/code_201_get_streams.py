"""GET_STREAMS: all streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_STREAMS, requests.Empty)
async def get_streams(context: Context, _request: requests.Empty) -> replies.Streams:
    """Describe every stream, without its topics."""
    streams = context.broker.namespaces.all()
    return replies.Streams([describe_stream(context.broker, stream) for stream in streams])
