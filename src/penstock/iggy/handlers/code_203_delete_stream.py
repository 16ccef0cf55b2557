"""DELETE_STREAM: the stream goes with all its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_STREAM, requests.StreamRequest)
async def delete_stream(request: requests.StreamRequest, call: Call) -> None:
    """Delete the topics, whoever made them, and then the stream."""
    stream = find_stream(call.broker, request.stream)
    await call.broker.topics.delete_namespace(stream.name)
