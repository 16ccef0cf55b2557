"""CREATE_STREAM: a stream is a namespace of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import stream_name
from penstock.iggy.topic_options import refuse_any
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.CREATE_STREAM, requests.CreateStream)
async def create_stream(request: requests.CreateStream, call: Call) -> replies.Stream:
    """Make a stream that lasts; its number is the lowest free one, if the client chose none."""
    refuse_any(request.options)
    stream = await call.broker.namespaces.create(
        stream_name(request.name), call.client.address, request.number
    )
    return await describe_stream(call.broker, stream, Pace())
