"""CREATE_PARTITIONS: add partitions to a topic; groups divide them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


_COUNTS: Final = range(1, 1001)
"""How many one request may add, as in apache-iggy."""


@handles(Command.CREATE_PARTITIONS, requests.PartitionsRequest)
async def create_partitions(context: Context, request: requests.PartitionsRequest) -> None:
    """Add partitions behind the ones that are there."""
    topic = find_topic(context.broker, request.stream, request.topic)
    if request.partitions_count not in _COUNTS:
        raise IggyError(ErrorCode.TOO_MANY_PARTITIONS, str(request.partitions_count))
    total = len(topic.partitions) + request.partitions_count
    await context.broker.topics.add_partitions(topic, total)
