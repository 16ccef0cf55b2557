"""GET_STREAM: a stream and its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_stream_fully, opened
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call
    from penstock.session import Answer


@handles(Command.GET_STREAM, requests.StreamRequest)
def get_stream(request: requests.StreamRequest, call: Call) -> Answer[replies.StreamDetails | None]:
    """Describe a stream; nothing when there is none."""
    try:
        stream = find_stream(call.broker, request.stream)
    except IggyError:
        return None
    topics = call.broker.topics.in_namespace(stream.name)
    return opened(topics, lambda: describe_stream_fully(call.broker, stream))
