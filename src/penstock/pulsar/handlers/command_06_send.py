"""SEND: write one entry, and give its receipt once it is safe.

The entry is stored byte for byte, once what is in it was found to be what it says. Appending
happens before anything is awaited, so that entries lie in the log in the order of their frames;
many of them wait for one flush together. Where an entry takes longer to look into than others can
wait, it is done in a thread, and what its producer sends behind it waits too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import wall_clock
from penstock.broker.errors import (
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    MessageTooLargeError,
    ProducerFencedError,
    TimestampTooFarAheadError,
    UnknownTopicError,
    UnknownTransactionError,
)
from penstock.broker.producers.named import SEQUENCES, epoch_and_sequence
from penstock.limits import (
    COMPRESSED_AT_ONCE_BYTES,
    INFLATED_AT_ONCE_BYTES,
    VALIDATED_AT_ONCE_BYTES,
)
from penstock.log.header import (
    ATTRIBUTE_CHUNK,
    ATTRIBUTE_DELAYED,
    ATTRIBUTE_TRANSACTIONAL,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Magic,
    build_header,
)
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import is_cpp
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import COORDINATOR, names_transaction, producer_of
from penstock.pulsar.transient import MESSAGE_ID
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    MessageIdData,
    ServerError,
)
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.delays import is_delayed
from penstock.records.pulsar.entry import (
    ChecksumMismatchError,
    Entry,
    MalformedEntryError,
    Numbers,
    read_entry,
)
from penstock.requests.validation import in_thread
from penstock.session import Deferred, PeerError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from penstock.broker.topics.partition import Partition
    from penstock.broker.transactions.states import Producer as TransactionProducer
    from penstock.pulsar.client import Call, Client
    from penstock.pulsar.producers import Producer
    from penstock.pulsar.transient import TransientProducer
    from penstock.session import Answer

TIME_MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999; what lies beyond is no time."""


NO_ID: Final = EARLIEST
"""Of a message that is there already: where is not known any more."""


class NotServedError(Exception):
    """The message is to be treated in a way that there is not: as any other it would be wrong."""


_NEVER_TAKEN: Final = (
    MessageTooLargeError,
    TimestampTooFarAheadError,
    NotServedError,
    MalformedBatchError,
    # Of a transaction that is not open: Java's client would connect anew, and send it again.
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    ProducerFencedError,
    UnknownTransactionError,
)


def refuse(request: CommandSend, code: ServerError.ValueType, message: str) -> BaseCommand:
    return BaseCommand(
        type=BaseCommand.SEND_ERROR,
        send_error=CommandSendError(
            producer_id=request.producer_id,
            sequence_id=max(request.sequence_id, request.highest_sequence_id),
            error=code,
            message=message,
        ),
    )


@handles(BaseCommand.SEND, refuse=refuse)
def handle(request: CommandSend, call: Call) -> Answer[BaseCommand | None]:
    producer = call.client.producers.get(request.producer_id)
    if producer is None:
        transient = call.client.transient_producers.get(request.producer_id)
        if transient is not None:
            return _pass_on(transient, request, call)
        if request.producer_id in call.client.closed_producers:
            return None  # Sent before the client knew.
        raise PeerError(f"SEND for producer {request.producer_id}, which is not there")
    if not producer.ready.done():
        raise PeerError(f"SEND for producer {request.producer_id}, which waits for its turn")
    _refuse_after_failure(producer)
    try:
        entry = _checked(request, call.entry)
        if not producer.looks.waiting and _is_quick(entry):
            if producer.partition.topic.config.validates_records:
                _look_into(call.entry, entry)
            return _take(producer, request, call, entry)
    except _NEVER_TAKEN as error:
        raise _failing_the_message(call.client, error) from error
    return _take_in_turn(producer.looks.turn(), producer, request, call, entry)


async def _take_in_turn(
    turn: AbstractAsyncContextManager[None],
    producer: Producer,
    request: CommandSend,
    call: Call,
    entry: Entry,
) -> BaseCommand | None:
    async with turn:
        try:
            if producer.partition.topic.config.validates_records:
                size = entry.metadata.uncompressed_size if entry.metadata.compression else 0
                look = partial(_look_into, call.entry, entry)
                await in_thread(call.client, len(call.entry), lambda: size, look)
            if call.client.producers.get(request.producer_id) is not producer:
                return None  # It was closed meanwhile, or lost its topic to another one.
            _refuse_after_failure(producer)
            receipt = _take(producer, request, call, entry)
        except _NEVER_TAKEN as error:
            raise _failing_the_message(call.client, error) from error
    return None if receipt is None else await receipt


def _is_quick(entry: Entry) -> bool:
    """Whether an entry can be looked into on the event loop, by the sizes that it says."""
    size = len(entry.payload)
    if entry.metadata.compression:
        inflated = entry.metadata.uncompressed_size
        return size <= COMPRESSED_AT_ONCE_BYTES and inflated <= INFLATED_AT_ONCE_BYTES
    return size <= VALIDATED_AT_ONCE_BYTES or not entry.is_batch


def _look_into(body: memoryview, entry: Entry) -> None:
    """Raise MalformedBatchError where the messages can't be read."""
    from penstock.records.pulsar.validation import validate_pulsar  # noqa: PLC0415  # numpy

    validate_pulsar(body, entry)


def _failing_the_message(client: Client, error: Exception) -> RefusedError:
    """Return the refusal that has the client give a message up, which would be refused again."""
    return RefusedError(_code_that_fails_the_message(client), str(error))


def _pass_on(producer: TransientProducer, request: CommandSend, call: Call) -> BaseCommand:
    """Send an entry to those who listen, as a non-persistent topic does."""
    try:
        if names_transaction(request):
            raise NotServedError("a non-persistent topic has no part in transactions")
        entry = _checked(request, call.entry)
    except _NEVER_TAKEN as error:
        raise _failing_the_message(call.client, error) from error
    producer.topic.publish(call.entry, _count(entry))
    receipt = CommandSendReceipt(
        producer_id=request.producer_id,
        sequence_id=request.sequence_id,
        message_id=MESSAGE_ID,
        highest_sequence_id=request.highest_sequence_id,
    )
    return BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt)


def _refuse_after_failure(producer: Producer) -> None:
    """Keep what was sent behind a message that could not be written from taking its place."""
    last = producer.last_sent
    if last is not None and last.done() and (failure := last.exception()) is not None:
        raise failure


def _code_that_fails_the_message(client: Client) -> ServerError.ValueType:
    """Return the code on which a client gives the message up, and only that.

    Pulsar's own is NotAllowedError. The C++ client answers it by connecting anew and sending the
    same message again, ten times a second until the send timeout; ChecksumError is the only code
    that fails the message there. Java's client in turn sends again what has a ChecksumError.
    """
    if is_cpp(client):
        return ServerError.ChecksumError
    return ServerError.NotAllowedError


def _take(
    producer: Producer, request: CommandSend, call: Call, entry: Entry
) -> Deferred[BaseCommand] | None:
    """Write an entry if it is not there; None when its topic is gone, of which the client heard."""
    partition, body = producer.partition, call.entry
    named = partition.producers.named
    numbers = None
    if partition.topic.config.deduplication:
        last = named.last(producer.key)
        numbers = Numbers.of(request.sequence_id, request.highest_sequence_id, _count(entry))
        if last is None:
            named.check_room(producer.key)
        elif last.has(numbers, producer.come_with):
            return _receipt(producer, request, last.offset, ledger_id=NO_ID, entry_id=NO_ID)
        if numbers.last >= SEQUENCES or entry.is_part:
            numbers = None
    transaction = _transaction(request, call, partition)
    header = _header(body, entry, _mark(producer, transaction, numbers))
    try:
        offset = partition.append([header, body])
    except UnknownTopicError:
        return None
    if numbers is not None:
        named.remember(producer.key, numbers, offset, partition.safe_offset)
    return _receipt(producer, request, offset, ledger_id=partition.id, entry_id=offset)


def _transaction(
    request: CommandSend, call: Call, partition: Partition
) -> TransactionProducer | None:
    """Return the transaction's producer of what is sent in one that is open there.

    Raises what Coordinator.check does, and NotServedError for a coordinator that there is not.
    """
    if not names_transaction(request):
        return None
    if request.txnid_most_bits != COORDINATOR:
        raise NotServedError(f"there is no coordinator {request.txnid_most_bits}")
    transaction = producer_of(request)
    # The partition looks too, but does not know that the transaction is one of Pulsar's.
    call.broker.transactions.check("", transaction, [partition.id])
    return transaction


class _Mark(NamedTuple):
    """What the log's header says of who wrote a batch."""

    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


_NO_MARK: Final = _Mark(0, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def _mark(
    producer: Producer, transaction: TransactionProducer | None, numbers: Numbers | None
) -> _Mark:
    if transaction is not None:
        return _Mark(ATTRIBUTE_TRANSACTIONAL, transaction.id, transaction.epoch, NO_SEQUENCE)
    if numbers is not None:
        return _Mark(0, producer.key, *epoch_and_sequence(numbers.last))
    return _NO_MARK


def _header(body: memoryview, entry: Entry, mark: _Mark) -> bytearray:
    return build_header(
        Magic.PULSAR,
        body,
        record_count=_count(entry),
        base_timestamp=_publish_time(entry),
        max_timestamp=_timestamp(entry),
        attributes=mark.attributes | _kind(entry),
        producer_id=mark.producer_id,
        producer_epoch=mark.producer_epoch,
        base_sequence=mark.base_sequence,
    )


def _kind(entry: Entry) -> int:
    """Return the attributes of what has to be looked into before it is delivered."""
    chunk = ATTRIBUTE_CHUNK if entry.is_chunk else 0
    return chunk | (ATTRIBUTE_DELAYED if is_delayed(entry.metadata) else 0)


def _count(entry: Entry) -> int:
    return entry.message_count if entry.is_batch else 1


def _checked(request: CommandSend, body: memoryview) -> Entry:
    if request.highest_sequence_id and request.highest_sequence_id < request.sequence_id:
        raise RefusedError(
            ServerError.MetadataError, "the highest sequence id is below the first one"
        )
    try:
        entry = read_entry(body)
    except ChecksumMismatchError as error:
        raise RefusedError(ServerError.ChecksumError, str(error)) from error
    except MalformedEntryError as error:
        raise RefusedError(ServerError.MetadataError, str(error)) from error
    _refuse_what_is_not_served(request, entry)
    return entry


def _refuse_what_is_not_served(request: CommandSend, entry: Entry) -> None:
    if request.marker or entry.metadata.HasField("marker_type"):
        raise NotServedError("markers are for brokers that replicate topics, which this one isn't")


def _timestamp(entry: Entry) -> int:
    """The entry's time in ms: the event's where the producer gave one, else the publishing's."""
    return _time_or_now(entry.metadata.event_time or entry.metadata.publish_time)


def _publish_time(entry: Entry) -> int:
    """The time in ms from which on the entry's age is counted for its subscriptions."""
    return _time_or_now(entry.metadata.publish_time)


def _time_or_now(timestamp: int) -> int:
    return timestamp if timestamp <= TIME_MAX_MS else wall_clock.now_ms()


def _receipt(
    producer: Producer, request: CommandSend, offset: int, *, ledger_id: int, entry_id: int
) -> Deferred[BaseCommand]:
    """Return what to say once the batch at an offset is safe."""

    def receipt(failure: BaseException | None) -> BaseCommand:
        if failure is not None:
            raise failure
        receipt = CommandSendReceipt(
            producer_id=request.producer_id,
            sequence_id=request.sequence_id,
            message_id=MessageIdData(ledgerId=ledger_id, entryId=entry_id),
            highest_sequence_id=request.highest_sequence_id,
        )
        return BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt)

    producer.last_sent = producer.partition.durable(offset)
    return Deferred(producer.last_sent, receipt)
