"""What a transaction goes through: functions from one row to the next (KIP-98, KIP-360, KIP-890).

A producer's epoch goes up with each of its instances, and whoever speaks with an older one is
fenced. Where the client's requests are those of KIP-890's second part, it goes up with each
transaction too, so that nothing that was sent in one can be taken for a part of the next one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from penstock.broker.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    ProducerFencedError,
    UnknownTransactionError,
)
from penstock.metadata.transactions import TransactionRow

NO_EPOCH: Final = -1
LAST_EPOCH: Final = 32_766
"""Whoever has come so far gets another producer id; the one above is kept for fencing."""


class TransactionState(StrEnum):
    """The states, by Kafka's names for them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_OUTCOMES: Final = {
    True: (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
    False: (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
}


class Producer(NamedTuple):
    """Who writes: an id, and which instance of it."""

    id: int
    epoch: int


def producer_of(row: TransactionRow) -> Producer:
    return Producer(row.producer_id, row.epoch)


def made(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> TransactionRow:
    """Return the row of a producer that is new; without a transactional id it is empty."""
    return TransactionRow(
        producer_id,
        transactional_id,
        previous_producer_id=-1,
        epoch=0,
        last_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        started_at_ms=-1,
        changed_at_ms=now_ms,
    )


def check_idle(row: TransactionRow) -> None:
    """Raise ConcurrentTransactionsError where a transaction is about to end."""
    if row.state in PREPARED:
        raise ConcurrentTransactionsError("the last transaction is about to end")


def check_producer(row: TransactionRow, producer: Producer) -> None:
    """Raise where a request is another producer's, or an older instance's.

    That is UnknownTransactionError for another id and ProducerFencedError for another epoch.
    """
    if producer.id != row.producer_id:
        raise UnknownTransactionError(
            f"the transactional id belongs to producer {row.producer_id}, not {producer.id}"
        )
    if producer.epoch != row.epoch:
        raise ProducerFencedError(
            f"producer {producer.id} has epoch {row.epoch}, the request has {producer.epoch}"
        )


def check_expected(row: TransactionRow, expected: Producer | None) -> None:
    """Check what a producer that wants to go on says it was (KIP-360).

    Its answer may have been lost, so it may be the one before. Raises ProducerFencedError.
    """
    if expected is None or expected.id == row.producer_id:
        return
    if expected.id == row.previous_producer_id and expected.epoch >= LAST_EPOCH:
        return
    raise ProducerFencedError(f"producer {expected.id} was replaced by {row.producer_id}")


def needs_new_id(row: TransactionRow, expected: Producer | None) -> bool:
    """Whether the epochs of this producer id are used up."""
    return row.epoch >= LAST_EPOCH and (expected is None or expected.epoch == row.epoch)


def with_new_id(
    row: TransactionRow, producer_id: int, timeout_ms: int, now_ms: int
) -> TransactionRow:
    """Return the row of the same transactional id with another producer id, at its first epoch."""
    return made(row.transactional_id, producer_id, timeout_ms, now_ms)._replace(
        previous_producer_id=row.producer_id
    )


def with_next_epoch(
    row: TransactionRow, expected: Producer | None, timeout_ms: int, now_ms: int
) -> TransactionRow:
    """Return the row for the next instance of a producer, or for one that goes on.

    One that goes on gets the next epoch once, however often it asks. Raises ProducerFencedError.
    """
    epoch, last_epoch = row.epoch + 1, NO_EPOCH
    if expected is not None and expected.id == row.producer_id:
        if expected.epoch == row.epoch:
            last_epoch = row.epoch
        elif expected.epoch == row.last_epoch:
            epoch, last_epoch = row.epoch, row.last_epoch
        else:
            raise ProducerFencedError(
                f"producer {row.producer_id} has epoch {row.epoch}, not {expected.epoch}"
            )
    elif expected is not None and row.epoch == 0:
        epoch = 0  # It asked before, and was given this id.
    elif expected is not None:
        raise ProducerFencedError(f"producer {row.producer_id} has epoch {row.epoch}, not 0")
    return row._replace(
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        started_at_ms=-1,
        changed_at_ms=now_ms,
    )


def begun(row: TransactionRow, now_ms: int) -> TransactionRow:
    """Return the row of a transaction whose first part was added. Raises as `check_idle`."""
    check_idle(row)
    if row.state == TransactionState.ONGOING:
        return row
    return row._replace(state=TransactionState.ONGOING, started_at_ms=now_ms, changed_at_ms=now_ms)


def has_ended(row: TransactionRow, producer: Producer, *, committed: bool, bumps: bool) -> bool:
    """Whether a client that wants its transaction to end asks for what has been done.

    With `bumps` the end gives the producer its next epoch: a client that did not hear of it speaks
    with the one before. Such a client may also abort what was never begun.

    Raises UnknownTransactionError, ProducerFencedError, ConcurrentTransactionsError where it is
    about to end so, and InvalidTransactionStateError where it ends otherwise or was never begun.
    """
    is_retry = bumps and _is_retry(row, producer)
    if not is_retry:
        check_producer(row, producer)
    preparing, complete = _OUTCOMES[committed]
    if row.state == preparing:
        raise ConcurrentTransactionsError("the transaction is about to end")
    if row.state == TransactionState.ONGOING:
        check_producer(row, producer)
        return False
    if row.state == complete and (is_retry or not bumps):
        return True
    if is_retry or committed or not bumps or row.state in PREPARED:
        raise InvalidTransactionStateError(f"the transaction is {row.state}")
    return False


def _is_retry(row: TransactionRow, producer: Producer) -> bool:
    if producer.id == row.producer_id:
        return producer.epoch == row.last_epoch == row.epoch - 1
    return (
        producer.id == row.previous_producer_id and producer.epoch == LAST_EPOCH and row.epoch == 0
    )


def prepared(row: TransactionRow, now_ms: int, *, committed: bool, bumps: bool) -> TransactionRow:
    """Return the row of a transaction of which it is decided how it ends.

    With `bumps` the epoch goes up: who wrote in it can't write any more, and its control batches
    say so.
    """
    return row._replace(
        state=_OUTCOMES[committed][0],
        epoch=row.epoch + 1 if bumps else row.epoch,
        last_epoch=row.epoch if bumps else row.last_epoch,
        changed_at_ms=now_ms,
    )


def fenced(row: TransactionRow, now_ms: int) -> TransactionRow:
    """Return the row of a transaction that is aborted because its producer is no more.

    Its epoch goes up, but for the last one there is, and nobody is known to have had it.
    """
    bumped = prepared(row, now_ms, committed=False, bumps=row.epoch <= LAST_EPOCH)
    return bumped._replace(last_epoch=NO_EPOCH)


def completed(row: TransactionRow, now_ms: int) -> TransactionRow:
    """Return the row of a transaction whose control batches are written."""
    complete = _OUTCOMES[is_commit(row)][1]
    return row._replace(state=complete, started_at_ms=-1, changed_at_ms=now_ms)


def is_commit(row: TransactionRow) -> bool:
    """Whether a transaction that is about to end is committed."""
    assert row.state in PREPARED, "it is decided first"
    return row.state == TransactionState.PREPARE_COMMIT
