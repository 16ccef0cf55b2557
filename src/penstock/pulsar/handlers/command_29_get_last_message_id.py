"""GET_LAST_MESSAGE_ID: where a topic ends, and how far the subscription is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import consumer_of
from penstock.pulsar.handlers.answers import error as refuse
from penstock.pulsar.positions import entry_before, last_message_id
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    MessageIdData,
)

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession

__all__ = ["handle", "refuse"]


async def handle(
    session: PulsarSession, request: CommandGetLastMessageId, _entry: memoryview
) -> BaseCommand:
    consumer = consumer_of(session, request.consumer_id)
    partition = consumer.partition
    response = CommandGetLastMessageIdResponse(
        request_id=request.request_id,
        last_message_id=await last_message_id(partition),
        consumer_mark_delete_position=MessageIdData(
            ledgerId=partition.id,
            entryId=await entry_before(partition, consumer.subscription.cursor.position),
        ),
    )
    return BaseCommand(
        type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, getLastMessageIdResponse=response
    )
