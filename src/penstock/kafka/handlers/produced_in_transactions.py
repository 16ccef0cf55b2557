"""Batches that are produced in transactions: whether their partitions have a part in those.

Up to version 11 of Produce a client has added them before. From version 12 on (KIP-890's second
part) the first batch for a partition adds it: the request waits until that is stored, and what
comes behind it on the connection waits too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.broker.errors import (
    BrokerError,
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    NotInTransactionError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TooManyTransactionsError,
)
from penstock.broker.transactions.states import Producer
from penstock.kafka.batches import is_transactional
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.log.header import ATTRIBUTE_TRANSACTIONAL, read_header
from penstock.metadata.errors import MetadataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ProduceResponse
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

FIRST_VERSION_WITH_ABORTABLE: Final = 11
FIRST_VERSION_THAT_BEGINS: Final = 12


class Target(NamedTuple):
    """A batch, where it goes, and its part of the answer."""

    partition: Partition
    records: Buffer
    result: ProduceResponse.PartitionProduceResponse


Refused: TypeAlias = dict[int, Exception]
"""Why a batch is refused, by the `id` of its part of the answer."""
_NOTHING_REFUSED: Final[Refused] = {}


def check_named(batch: Buffer, transactional_id: str | None) -> None:
    """Refuse a batch of a transaction in a request that does not say whose it is."""
    if transactional_id is None and is_transactional(batch):
        raise RequestError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "there is no transactional id"
        )


def check_begins(partition: Partition, header: BatchHeader, version: int) -> None:
    """Check that a producer's first batch in a partition is the first one that it sent there.

    Each transaction of KIP-890's second part begins at sequence 0, so what comes before one that is
    above that is still on its way (KAFKA-18202). Raises OutOfOrderSequenceError, upon which clients
    send again. Of an older version, and without a transaction, whoever is not known goes on with
    any sequence.
    """
    if (
        version >= FIRST_VERSION_THAT_BEGINS
        and header.attributes & ATTRIBUTE_TRANSACTIONAL
        and header.base_sequence > 0
        and not partition.producers.knows(header.producer_id)
        and header.producer_id not in partition.transactions.open
    ):
        raise OutOfOrderSequenceError(
            f"producer {header.producer_id} sent sequence {header.base_sequence} first, not 0"
        )


def has_a_part(targets: Iterable[Target], call: Call) -> bool:
    """Whether the partitions of all batches of transactions have a part in those."""
    verify = call.broker.transactions.verify
    try:
        for target in targets:
            if is_transactional(target.records):
                verify(*_producer(target), target.partition.id)
    except BrokerError:
        return False
    return True


async def join(transactional_id: str | None, targets: Iterable[Target], call: Call) -> Refused:
    """Have the partitions of batches of transactions take part, where the version allows that.

    Returns which batches can't be appended, and why.
    """
    if transactional_id is None:
        return _NOTHING_REFUSED
    of_producers: dict[Producer, list[Target]] = {}
    for target in targets:
        if is_transactional(target.records):
            of_producers.setdefault(_producer(target), []).append(target)
    refused: Refused = {}
    for producer, its_targets in of_producers.items():
        partition_ids = {target.partition.id for target in its_targets}
        try:
            await _join(transactional_id, producer, partition_ids, call)
        except Exception as error:
            reason = _in_words_of(error, call.version)
            refused.update((id(target.result), reason) for target in its_targets)
    return refused


async def _join(
    transactional_id: str, producer: Producer, partition_ids: set[int], call: Call
) -> None:
    transactions = call.broker.transactions
    if call.version >= FIRST_VERSION_THAT_BEGINS:
        await transactions.add_partitions(
            transactional_id, producer, partition_ids, call.client.address
        )
    else:
        await transactions.loaded()
        transactions.check(transactional_id, producer, partition_ids)


def _in_words_of(error: Exception, version: int) -> Exception:
    """Return what producers of a version make the right thing of."""
    if isinstance(error, ProducerFencedError):
        return InvalidProducerEpochError(str(error))
    if isinstance(error, NotInTransactionError) and version >= FIRST_VERSION_WITH_ABORTABLE:
        return RequestError(ErrorCode.TRANSACTION_ABORTABLE, str(error))
    is_soon_over = isinstance(error, ConcurrentTransactionsError)
    if isinstance(error, TooManyTransactionsError | MetadataError) or (
        is_soon_over and version < FIRST_VERSION_THAT_BEGINS
    ):
        # Which they send again.
        return RequestError(ErrorCode.NOT_ENOUGH_REPLICAS, str(error))
    return error


def _producer(target: Target) -> Producer:
    header = read_header(target.records)
    return Producer(header.producer_id, header.producer_epoch)
