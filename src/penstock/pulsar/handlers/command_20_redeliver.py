"""REDELIVER_UNACKNOWLEDGED_MESSAGES: a consumer gives messages back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pace import Pace
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandRedeliverUnacknowledgedMessages

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
async def handle(request: CommandRedeliverUnacknowledgedMessages, call: Call) -> None:
    consumer = call.client.consumers.get(request.consumer_id)
    if consumer is None:
        return
    if request.HasField("consumer_epoch"):
        consumer.set_epoch(request.consumer_epoch)
    offsets = set()
    pace = Pace()
    for message_id in request.message_ids:
        if message_id.ledgerId == consumer.partition.id:
            offsets.add(message_id.entryId)
        if pace.is_over():
            await pace.others()
    everything = not request.message_ids
    consumer.subscription.redeliver(consumer.member, None if everything else offsets)
