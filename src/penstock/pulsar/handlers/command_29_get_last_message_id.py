"""GET_LAST_MESSAGE_ID: where a topic ends, and how far the subscription is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import consumer_of, refusal
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.positions import entry_before, last_message_id
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    MessageIdData,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.GET_LAST_MESSAGE_ID, refuse=refusal)
async def handle(request: CommandGetLastMessageId, call: Call) -> BaseCommand:
    consumer = consumer_of(call, request.consumer_id)
    partition = consumer.partition
    response = CommandGetLastMessageIdResponse(
        request_id=request.request_id,
        last_message_id=await last_message_id(partition, compacted=consumer.member.reads_compacted),
        consumer_mark_delete_position=MessageIdData(
            ledgerId=partition.id,
            entryId=await entry_before(partition, consumer.subscription.cursor.position),
        ),
    )
    return BaseCommand(
        type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, getLastMessageIdResponse=response
    )
