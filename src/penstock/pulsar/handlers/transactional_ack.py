"""ACK in a transaction: it is durable when it is answered, and takes effect with the commit."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.subscriptions.subscription import SubscriptionState
from penstock.pace import Pace
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.transactions import part_of, producer_of
from penstock.pulsar.wire.message_ids import EARLIEST, mask_from_ack_set
from penstock.pulsar.wire.pulsar_api_pb2 import CommandAck, MessageIdData, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.transactions.states import Producer
    from penstock.pulsar.client import Call
    from penstock.pulsar.consumer import PulsarConsumer

_CUMULATIVE: Final = CommandAck.Cumulative
_STEPS_TOGETHER: Final = 200


class _Meant(NamedTuple):
    """A batch, and a bit for each of its messages that is not meant; None means all of them."""

    start: int
    end: int
    open_mask: int | None


async def acknowledge(call: Call, consumer: PulsarConsumer, request: CommandAck) -> None:
    """Have a transaction acknowledge messages. Where one of them can't be acknowledged, those of
    the same request before it may be.

    Raises RefusedError, UnknownTransactionError, InvalidTransactionStateError,
    TransactionConflictError, NoMemoryError and MetadataError.
    """
    producer = producer_of(request)
    if request.ack_type == _CUMULATIVE and len(request.message_id) != 1:
        raise RefusedError(
            ServerError.NotAllowedError, "a cumulative acknowledgement has one message id"
        )
    meant, pace = [], Pace()
    for message_id in request.message_id:
        meant.append(await _found(consumer, message_id))
        if pace.is_over():
            await pace.others()
    steps = _taking(consumer, request, producer, meant)
    transactional = call.broker.subscriptions.transactional
    going_on = True
    while going_on:
        _check(call, consumer, producer)
        try:
            going_on = _take_some(steps)
        finally:
            # In the same turn, so that no end of the transaction comes between.
            await transactional.save(consumer.subscription, producer.id)
        if pace.is_over():  # What was acknowledged before is not saved again.
            await pace.others()


def _check(call: Call, consumer: PulsarConsumer, producer: Producer) -> None:
    """Check that the transaction is open and has the subscription."""
    if consumer.subscription.state is SubscriptionState.DELETED:
        raise RefusedError(ServerError.SubscriptionNotFound, "the subscription was deleted")
    call.broker.transactions.verify_name("", producer, part_of(consumer.subscription))


def _take_some(steps: Iterator[None]) -> bool:
    """Take a turn's worth of steps; return whether there may be more."""
    return sum(1 for _ in islice(steps, _STEPS_TOGETHER)) == _STEPS_TOGETHER


def _taking(
    consumer: PulsarConsumer, request: CommandAck, producer: Producer, meant: list[_Meant]
) -> Iterator[None]:
    subscription = consumer.subscription
    for each in meant:
        if request.ack_type == _CUMULATIVE:
            yield from subscription.holding_through(producer.id, *each)
        else:
            subscription.hold(producer.id, *each)
            yield


async def _found(consumer: PulsarConsumer, message_id: MessageIdData) -> _Meant:
    offset = message_id.entryId
    extent = None
    if message_id.ledgerId == consumer.partition.id and offset < EARLIEST:
        extent = await consumer.subscription.extent_at(offset)
    if extent is None or extent[0] != offset:
        raise RefusedError(
            ServerError.NotAllowedError,
            f"{message_id.ledgerId}:{offset} is no message of this topic that was delivered",
        )
    ack_set = message_id.ack_set
    return _Meant(*extent, mask_from_ack_set(ack_set) if ack_set else None)
