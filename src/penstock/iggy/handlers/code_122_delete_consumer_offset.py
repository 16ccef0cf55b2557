"""DELETE_CONSUMER_OFFSET: let a consumer begin anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition_of, find_topic
from penstock.iggy.offsets import owner_of, stored_offset
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.DELETE_CONSUMER_OFFSET, requests.DeleteConsumerOffset)
async def delete_consumer_offset(request: requests.DeleteConsumerOffset, call: Call) -> None:
    """Forget the stored offset of one partition."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = find_partition_of(call, topic, request.consumer, request.partition_id)
    owner = owner_of(call.broker, topic, request.consumer)
    if stored_offset(call.broker, owner, partition) is None:
        raise IggyError(ErrorCode.CONSUMER_OFFSET_NOT_FOUND)
    await call.broker.offsets.delete(owner, [partition.id])
