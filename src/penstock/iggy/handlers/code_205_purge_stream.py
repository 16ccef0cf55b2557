"""PURGE_STREAM: give up all messages of all topics of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.giving_up import purge
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.offsets import OFFSET_KINDS
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.PURGE_STREAM, requests.StreamRequest)
async def purge_stream(request: requests.StreamRequest, call: Call) -> None:
    """Return when the topics are empty, and stay so."""
    stream = find_stream(call.broker, request.stream)
    await purge(call.broker, call.broker.topics.in_namespace(stream.name), OFFSET_KINDS)
