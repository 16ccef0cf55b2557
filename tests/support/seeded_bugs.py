"""Bugs to start a broker with, so that what looks for bugs can be seen to find them.

Each is installed in the broker's own process by `faulty_serve.py` before it serves.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.broker.groups.pending_offsets import PendingOffsets
from penstock.broker.producers.idempotence import ProducerStates
from penstock.broker.reading.conversion_cache import Taken
from penstock.broker.subscriptions.transactional import TransactionalAcknowledgements
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.markers import Markers
from penstock.log.header import read_header
from penstock.session import Buffer

EVERY = 20
"""A bug that does not always show shows at each so many calls."""


def flush_does_nothing() -> None:
    """The operating system says that all is on stable storage, and nothing is."""
    os.fdatasync = lambda descriptor: None


def acknowledged_before_the_flush() -> None:
    """Producers are answered when the page cache has their batch."""
    Partition.durable = Partition.written  # type: ignore[method-assign]


def seen_before_the_flush() -> None:
    """Readers see what the page cache has, as if nothing could take it back."""
    Partition.readable_end = (  # type: ignore[method-assign]
        lambda self, *isolation: self._log.written_offset
    )


def batches_are_dropped() -> None:
    """Now and then a batch is acknowledged and never written."""
    append, calls = Partition.append, itertools.count(1)

    def dropping(self: Partition, parts: Sequence[Buffer], *header: Any) -> int:
        # An idempotent producer would notice at its next batch.
        if read_header(parts[0]).producer_id < 0 < self.end_offset and next(calls) % EVERY == 0:
            return self.end_offset - 1
        return append(self, parts, *header)

    Partition.append = dropping  # type: ignore[method-assign]


def receipts_are_wrong() -> None:
    """Now and then a producer is told the offset after its own."""
    append, calls = Partition.append, itertools.count(1)

    def lying(self: Partition, parts: Sequence[Buffer], *header: Any) -> int:
        offset = append(self, parts, *header)
        return offset + 1 if next(calls) % EVERY == 0 else offset

    Partition.append = lying  # type: ignore[method-assign]


def sequences_are_forgotten() -> None:
    """What an idempotent producer repeats is written again."""
    ProducerStates.check = lambda self, header: None  # type: ignore[method-assign]


def readers_skip() -> None:
    """Now and then a read begins a batch too late."""
    read_on, calls = Partition.read_on, itertools.count(1)

    async def skipping(self: Partition, offset: int, *rest: Any, **named: Any) -> Taken:
        header = await self.batch_at(offset) if next(calls) % EVERY == 0 else None
        if header is not None and header.next_offset < self.readable_end():
            offset = header.next_offset
        return await read_on(self, offset, *rest, **named)

    Partition.read_on = skipping  # type: ignore[method-assign]


def ends_forget_a_partition() -> None:
    """One of the partitions of a transaction does not hear how it ended."""
    write = Markers.write

    async def forgetting(
        self: Markers, producer_id: int, epoch: int, partition_ids: Iterable[int], **how: bool
    ) -> set[int]:
        return await write(self, producer_id, epoch, sorted(partition_ids)[1:], **how)

    Markers.write = forgetting  # type: ignore[method-assign,assignment]


def aborts_commit() -> None:
    """Now and then a transaction that is aborted is committed."""
    write, calls = Markers.write, itertools.count(1)

    async def committing(
        self: Markers, producer_id: int, epoch: int, partition_ids: Iterable[int], committed: bool
    ) -> set[int]:
        committed = committed or next(calls) % 3 == 0
        return await write(self, producer_id, epoch, partition_ids, committed=committed)

    Markers.write = committing  # type: ignore[method-assign,assignment]


def offsets_do_not_wait() -> None:
    """Offsets of a transaction take effect whatever becomes of it."""
    outcome, decided = PendingOffsets.outcome, PendingOffsets.decided
    PendingOffsets.outcome = (  # type: ignore[method-assign]
        lambda self, producer_id, committed: outcome(self, producer_id, committed=True)
    )
    PendingOffsets.decided = (  # type: ignore[method-assign]
        lambda self, producer_id, committed: decided(self, producer_id, committed=True)
    )


def acknowledgements_do_not_wait() -> None:
    """Acknowledgements of a transaction take effect whatever becomes of it."""
    outcome, decided = TransactionalAcknowledgements.outcome, TransactionalAcknowledgements.decided
    TransactionalAcknowledgements.outcome = (  # type: ignore[method-assign]
        lambda self, producer_id, committed: outcome(self, producer_id, committed=True)
    )
    TransactionalAcknowledgements.decided = (  # type: ignore[method-assign]
        lambda self, producer_id, committed: decided(self, producer_id, committed=True)
    )


BUGS: dict[str, Callable[[], None]] = {
    bug.__name__: bug
    for bug in (
        flush_does_nothing,
        acknowledged_before_the_flush,
        seen_before_the_flush,
        batches_are_dropped,
        receipts_are_wrong,
        sequences_are_forgotten,
        readers_skip,
        ends_forget_a_partition,
        aborts_commit,
        offsets_do_not_wait,
        acknowledgements_do_not_wait,
    )
}
