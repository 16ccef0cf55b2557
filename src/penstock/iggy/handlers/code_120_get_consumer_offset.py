"""GET_CONSUMER_OFFSET: how far a consumer or a group has come in a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition_of, find_topic
from penstock.iggy.offsets import current_offset, owner_of, stored_offset
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset)
async def get_consumer_offset(
    request: requests.GetConsumerOffset, call: Call
) -> replies.ConsumerOffset | replies.NoConsumerOffset:
    """Report the stored offset."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = find_partition_of(call, topic, request.consumer, request.partition_id)
    owner = owner_of(call.broker, topic, request.consumer)
    stored = stored_offset(call.broker, owner, partition)
    await partition.opened()
    if stored is None:
        return replies.NoConsumerOffset(partition.index, current_offset(partition))
    return replies.ConsumerOffset(partition.index, current_offset(partition), stored)
