"""ACK: messages are dealt with, one by one or all up to one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

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
    acknowledge = _through if request.ack_type == CommandAck.Cumulative else _one
    for message_id in request.message_id:
        if message_id.ledgerId == consumer.partition.id and message_id.entryId < EARLIEST:
            acknowledge(consumer, message_id)
    return _saved(call, consumer, request) if request.HasField("request_id") else None


async def _saved(call: Call, consumer: PulsarConsumer, request: CommandAck) -> BaseCommand:
    await call.broker.subscriptions.save(consumer.subscription)
    return _response(request)


def _response(request: CommandAck) -> BaseCommand:
    response = CommandAckResponse(consumer_id=request.consumer_id)
    if request.HasField("request_id"):
        response.request_id = request.request_id
    return BaseCommand(type=BaseCommand.ACK_RESPONSE, ackResponse=response)


def _one(consumer: PulsarConsumer, message_id: MessageIdData) -> None:
    consumer.subscription.acknowledge(message_id.entryId, _open_mask(message_id))


def _through(consumer: PulsarConsumer, message_id: MessageIdData) -> None:
    consumer.subscription.acknowledge_through(message_id.entryId, _open_mask(message_id))


def _open_mask(message_id: MessageIdData) -> int | None:
    """The batch's messages that are not meant; None when the whole batch is."""
    return mask_from_ack_set(message_id.ack_set) if message_id.ack_set else None
