"""DELETE_STREAM: the stream goes with all its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.DELETE_STREAM, requests.StreamRequest)
async def delete_stream(context: Context, request: requests.StreamRequest) -> None:
    """Delete the topics, whoever made them, and then the stream."""
    stream = find_stream(context.broker, request.stream)
    await context.broker.topics.delete_namespace(stream.name)
