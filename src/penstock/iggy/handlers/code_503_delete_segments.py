"""DELETE_SEGMENTS: give up the oldest segments of a partition that all have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.giving_up import delete_segments as give_up_segments
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_SEGMENTS, requests.DeleteSegments)
async def delete_segments(request: requests.DeleteSegments, call: Call) -> None:
    """Give up so many or fewer: none that is written to or that somebody has yet to read."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = topic.partition(request.partition_id)
    await give_up_segments(call.broker, partition, request.segments_count)
