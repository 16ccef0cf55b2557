"""UPDATE_STREAM: rename a stream, and with it every topic in it, in all protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream, stream_name
from penstock.iggy.topic_options import refuse_any
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.UPDATE_STREAM, requests.UpdateStream)
async def update_stream(request: requests.UpdateStream, call: Call) -> None:
    """Rename; the number stays, and so do topics, messages and offsets."""
    stream = find_stream(call.broker, request.stream)
    refuse_any(request.options)
    name = stream_name(request.name)
    if name != stream.name:
        await call.broker.topics.rename_namespace(stream.name, name)
