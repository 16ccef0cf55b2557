"""STORE_CONSUMER_OFFSET: remember the last message that a consumer is done with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition_of, find_topic
from penstock.iggy.offsets import owner_of, store_offset
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.STORE_CONSUMER_OFFSET, requests.StoreConsumerOffset)
async def store_consumer_offset(request: requests.StoreConsumerOffset, call: Call) -> None:
    """Store an offset that a message has; it lasts when this returns."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = find_partition_of(call, topic, request.consumer, request.partition_id)
    owner = owner_of(call.broker, topic, request.consumer)
    await partition.opened()
    if request.offset >= partition.readable_end():
        raise IggyError(ErrorCode.INVALID_OFFSET, str(request.offset))
    await store_offset(call.broker, owner, partition, request.offset)
