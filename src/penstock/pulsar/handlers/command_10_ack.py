"""ACK: messages are dealt with, one by one or all up to one."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.limits import PULSAR_LOOK_UPS_TOGETHER
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.message_ids import EARLIEST, mask_from_ack_set
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAckResponse,
    MessageIdData,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call
    from penstock.pulsar.consumer import PulsarConsumer
    from penstock.pulsar.handlers.registry import Reply
    from penstock.session import Answer

logger = logging.getLogger(__name__)


def refuse(request: CommandAck, code: ServerError.ValueType, message: str) -> BaseCommand:
    answer = _response(request)
    answer.ackResponse.error = code
    answer.ackResponse.message = message
    return answer


@handles(BaseCommand.ACK, refuse=refuse)
def handle(request: CommandAck, call: Call) -> Answer[Reply]:
    consumer = call.client.consumers.get(request.consumer_id)
    if consumer is None:
        return None  # It was closed while the acknowledgement was on its way.
    if request.txnid_least_bits or request.txnid_most_bits:
        raise RefusedError(ServerError.NotAllowedError, "transactions are not there yet")
    if request.HasField("validation_error"):
        logger.warning(
            "a client could not read messages of %s: %s",
            consumer.partition.topic.name.pulsar,
            CommandAck.ValidationError.Name(request.validation_error),
        )
    for position, message_id in enumerate(request.message_id):
        if not _acknowledged_at_once(consumer, request, message_id):
            return _acknowledged(call, consumer, request, position)
    return _saved(call, consumer, request) if request.HasField("request_id") else None


def _acknowledged_at_once(
    consumer: PulsarConsumer, request: CommandAck, message_id: MessageIdData
) -> bool:
    """Take one message id; False where the log has to be asked for its batch."""
    if message_id.ledgerId != consumer.partition.id or message_id.entryId >= EARLIEST:
        return True
    subscription = consumer.subscription
    if request.ack_type == CommandAck.Cumulative:
        return subscription.acknowledge_through_at_once(message_id.entryId, _open_mask(message_id))
    return subscription.acknowledge_at_once(message_id.entryId, _open_mask(message_id))


async def _acknowledged(
    call: Call, consumer: PulsarConsumer, request: CommandAck, position: int
) -> BaseCommand | None:
    """Take the message ids from `position` on, one after another.

    What waits for the log is the request itself, of which a connection has few in flight.
    """
    subscription = consumer.subscription
    for number, message_id in enumerate(request.message_id[position:], start=1):
        if _acknowledged_at_once(consumer, request, message_id):
            continue
        if request.ack_type == CommandAck.Cumulative:
            await subscription.acknowledge_through(message_id.entryId, _open_mask(message_id))
        else:
            await subscription.acknowledge(message_id.entryId, _open_mask(message_id))
        if number % PULSAR_LOOK_UPS_TOGETHER == 0:
            await asyncio.sleep(0)  # Others have work too.
    return await _saved(call, consumer, request) if request.HasField("request_id") else None


async def _saved(call: Call, consumer: PulsarConsumer, request: CommandAck) -> BaseCommand:
    await call.broker.subscriptions.save(consumer.subscription)
    return _response(request)


def _response(request: CommandAck) -> BaseCommand:
    response = CommandAckResponse(consumer_id=request.consumer_id)
    if request.HasField("request_id"):
        response.request_id = request.request_id
    return BaseCommand(type=BaseCommand.ACK_RESPONSE, ackResponse=response)


def _open_mask(message_id: MessageIdData) -> int | None:
    """The batch's messages that are not meant; None when the whole batch is."""
    return mask_from_ack_set(message_id.ack_set) if message_id.ack_set else None
