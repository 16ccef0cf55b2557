"""DELETE_PARTITIONS: take the last partitions of a topic away; groups divide the others anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import check_partitions, find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_PARTITIONS, requests.DeletePartitions)
async def delete_partitions(request: requests.DeletePartitions, call: Call) -> None:
    """Delete partitions with their messages and all offsets that were stored for them."""
    check_partitions(request.partitions_count, at_least=1)
    topic = find_topic(call.broker, request.stream, request.topic)
    there = len(topic.partitions)
    if request.partitions_count > there and not request.or_all:
        raise IggyError(ErrorCode.INVALID_PARTITIONS_COUNT, str(request.partitions_count))
    if there:
        count = min(request.partitions_count, there)
        await call.broker.topics.remove_partitions(topic, count)
