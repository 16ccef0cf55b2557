"""CREATE_PARTITIONS: add partitions to a topic; groups divide them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import check_partitions, find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.CREATE_PARTITIONS, requests.CreatePartitions)
async def create_partitions(request: requests.CreatePartitions, call: Call) -> None:
    """Add partitions behind the ones that are there."""
    check_partitions(request.partitions_count, at_least=1)
    topic = find_topic(call.broker, request.stream, request.topic)
    total = len(topic.partitions) + request.partitions_count
    await call.broker.topics.add_partitions(topic, total, address=call.client.address)
