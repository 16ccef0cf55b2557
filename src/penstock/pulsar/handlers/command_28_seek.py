"""SEEK: move a subscription to a message or a time.

Its consumers are sent away first and subscribe again. The C++ client counts on it: it empties its
queue, and the permits of what was in there come back only with a new subscription.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import consumer_of, refusal, success
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.positions import position_at, position_at_time
from penstock.pulsar.wire.message_ids import mask_from_ack_set
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandSeek, ServerError

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.SEEK, refuse=refusal)
async def handle(request: CommandSeek, call: Call) -> BaseCommand:
    consumer = consumer_of(call, request.consumer_id)
    partition, open_mask = consumer.partition, None
    if request.HasField("message_id"):
        position = await position_at(partition, request.message_id)
        if request.message_id.ack_set and position == request.message_id.entryId:
            open_mask = mask_from_ack_set(request.message_id.ack_set)
    elif request.HasField("message_publish_time"):
        position = await position_at_time(partition, request.message_publish_time)
    else:
        raise RefusedError(ServerError.MetadataError, "SEEK without a message id or a time")
    await call.broker.subscriptions.reset(consumer.subscription, position, open_mask)
    return success(request.request_id)
