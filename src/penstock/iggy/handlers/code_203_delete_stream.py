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
    """Delete the topics one after another, then the stream."""
    stream = find_stream(context.broker, request.stream)
    for topic in context.broker.topics.in_namespace(stream.name):
        await context.broker.topics.delete(topic)
    await context.broker.namespaces.delete(stream.name)
