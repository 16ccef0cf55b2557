"""ACK: messages are dealt with, one by one or all up to one."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from penstock.limits import (
    PULSAR_ACK_SET_WORDS,
    PULSAR_ACKNOWLEDGED_TOGETHER,
    PULSAR_LOOK_UPS_TOGETHER,
)
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers import transactional_ack
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import names_transaction
from penstock.pulsar.wire.message_ids import EARLIEST, mask_from_ack_set
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAckResponse,
    MessageIdData,
    ServerError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.pulsar.client import Call
    from penstock.pulsar.consumer import PulsarConsumer
    from penstock.pulsar.handlers.registry import Reply
    from penstock.session import Answer

_CUMULATIVE: Final = CommandAck.Cumulative
_WORDS_AS_A_LOOK_UP: Final = 64
"""Of an ack set: about what takes as long as to look a batch up."""

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
        # Else it was closed while the acknowledgement was on its way.
        is_transient = request.consumer_id in call.client.transient_consumers
        return _response(request) if is_transient and request.HasField("request_id") else None
    if request.ack_type == _CUMULATIVE and consumer.subscription.kind.is_shared:
        _refuse_cumulative(request, call)
        return None
    if names_transaction(request):
        return _acknowledged_in_transaction(call, consumer, request)
    if request.HasField("validation_error"):
        logger.warning(
            "a client could not read messages of %s: %s",
            consumer.partition.topic.name.pulsar,
            CommandAck.ValidationError.Name(request.validation_error),
        )
    position = _take(consumer, request, 0)
    if position < len(request.message_id):
        return _acknowledged(call, consumer, request, position)
    return _saved(call, consumer, request) if request.HasField("request_id") else None


def _refuse_cumulative(request: CommandAck, call: Call) -> None:
    """Refuse what would acknowledge messages of other consumers."""
    reason = "consumers of a shared subscription acknowledge messages one by one, not up to one"
    if request.HasField("request_id"):
        raise RefusedError(ServerError.NotAllowedError, reason)
    client = call.client
    extra = {"address": client.address}
    logger.warning("an acknowledgement of %s: %s", client.transport.peer, reason, extra=extra)


def _take(consumer: PulsarConsumer, request: CommandAck, first: int) -> int:
    """Do as `_take_at_once`, and count what was open."""
    before = consumer.subscription.acknowledged
    position = _take_at_once(consumer, request, first)
    consumer.member.traffic.note_acknowledged(consumer.subscription.acknowledged - before)
    return position


def _take_at_once(consumer: PulsarConsumer, request: CommandAck, first: int) -> int:
    """Take the message ids from `first` on; return the place of the one to go on with.

    That is where the log has to be asked for a batch, or where it is others' turn.
    """
    subscription = consumer.subscription
    ledger_id = consumer.partition.id
    message_ids = request.message_id
    end = min(len(message_ids), first + PULSAR_ACKNOWLEDGED_TOGETHER)
    if request.ack_type == _CUMULATIVE:
        take = subscription.acknowledge_through_at_once
    else:
        take = subscription.acknowledge_at_once
        whole = _whole_batches(message_ids, range(first, end), ledger_id)
        first += subscription.acknowledge_batches_at_once(whole)
    words = 0
    for position in range(first, end):
        if words > PULSAR_ACK_SET_WORDS:
            return position
        message_id = message_ids[position]
        offset = message_id.entryId
        if message_id.ledgerId != ledger_id or offset >= EARLIEST:
            continue
        ack_set = message_id.ack_set
        if not take(offset, mask_from_ack_set(ack_set) if ack_set else None):
            return position
        words += len(ack_set)
    return end


def _whole_batches(
    message_ids: Sequence[MessageIdData], positions: range, ledger_id: int
) -> Iterator[int]:
    """The offsets of the message ids at some positions, as long as they are of whole batches."""
    for position in positions:
        message_id = message_ids[position]
        if message_id.ledgerId != ledger_id or message_id.ack_set:
            return
        yield message_id.entryId


async def _acknowledged(
    call: Call, consumer: PulsarConsumer, request: CommandAck, position: int
) -> BaseCommand | None:
    """Take the message ids from `position` on, one after another.

    What waits for the log is the request itself, of which a connection has few in flight.
    """
    done = 0
    while position < len(request.message_id):
        if done >= PULSAR_LOOK_UPS_TOGETHER:
            await asyncio.sleep(0)  # Others have work too.
            done = 0
        following = _take(consumer, request, position)
        if following > position:
            done += PULSAR_LOOK_UPS_TOGETHER
        else:
            await _look_up(consumer, request, position)
            done += 1 + len(request.message_id[position].ack_set) // _WORDS_AS_A_LOOK_UP
            following += 1
        position = following
    return await _saved(call, consumer, request) if request.HasField("request_id") else None


async def _acknowledged_in_transaction(
    call: Call, consumer: PulsarConsumer, request: CommandAck
) -> BaseCommand | None:
    await transactional_ack.acknowledge(call, consumer, request)
    return _response(request) if request.HasField("request_id") else None


async def _look_up(consumer: PulsarConsumer, request: CommandAck, position: int) -> None:
    message_id = request.message_id[position]
    subscription = consumer.subscription
    before = subscription.acknowledged
    if request.ack_type == _CUMULATIVE:
        await subscription.acknowledge_through(message_id.entryId, _open_mask(message_id))
    else:
        await subscription.acknowledge(message_id.entryId, _open_mask(message_id))
    # A reset meanwhile may have taken others back.
    consumer.member.traffic.note_acknowledged(max(subscription.acknowledged - before, 0))


async def _saved(call: Call, consumer: PulsarConsumer, request: CommandAck) -> BaseCommand:
    await call.broker.subscriptions.save(consumer.subscription)
    return _response(request)


def _response(request: CommandAck) -> BaseCommand:
    response = CommandAckResponse(consumer_id=request.consumer_id)
    if names_transaction(request):
        response.txnid_least_bits = request.txnid_least_bits
        response.txnid_most_bits = request.txnid_most_bits
    if request.HasField("request_id"):
        response.request_id = request.request_id
    return BaseCommand(type=BaseCommand.ACK_RESPONSE, ackResponse=response)


def _open_mask(message_id: MessageIdData) -> int | None:
    """The batch's messages that are not meant; None when the whole batch is."""
    return mask_from_ack_set(message_id.ack_set) if message_id.ack_set else None
