"""One partition: the only door to its log, for the producers and the readers of all protocols."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias

from penstock import wall_clock
from penstock.broker.compaction.on_partition import PartitionCompaction
from penstock.broker.producers.idempotence import ProducerStates
from penstock.broker.reading.native import BatchReader
from penstock.broker.settings import Flush
from penstock.broker.topics.opening import Opening, unopened
from penstock.broker.topics.readable import Readable
from penstock.broker.topics.replay import replay
from penstock.broker.transactions.isolation import Isolation
from penstock.broker.transactions.verification import Verification
from penstock.log.errors import LogError, LogFailedError, LogNotOpenError, OffsetOutOfRangeError
from penstock.log.header import (
    ATTRIBUTE_TRANSACTIONAL,
    NO_PRODUCER_ID,
    Magic,
    build_gap,
    read_header,
    stamp_append_time,
)
from penstock.log.interface import LogSummary, Outcome
from penstock.records.kafka.control import end_marker
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.broker.topics.own_topic import OwnTopic
    from penstock.broker.topics.replay import BatchState
    from penstock.log import Log
    from penstock.log.header import BatchHeader
    from penstock.log.interface import SegmentExtent, StoredSegment
    from penstock.session import Buffer

OpenLog: TypeAlias = "Callable[[Partition], Awaitable[Log]]"
"""Opens a partition's log, off the event loop. Raises LogError and OSError."""

logger = logging.getLogger(__name__)


class Partition(Readable):
    """All methods belong to the event loop's thread. `index` counts from 0 within the topic.

    `id` is unique among all partitions that ever were; Pulsar clients know it as the ledger id.
    `leader_epoch` is the one at which the partition is open; its new batches are stamped with it.

    Its log is opened when it is first needed: whoever is about to use it awaits `opened` where
    `is_open` is not set. Before that, all that asks the log raises LogNotOpenError.
    """

    def __init__(
        self,
        topic: OwnTopic,
        index: int,
        partition_id: int,
        leader_epoch: int,
        open_log: OpenLog,
        conversions: ConversionCache,
        verification: Verification | None = None,
    ) -> None:
        super().__init__(topic, index, conversions)
        self.id = partition_id
        self.leader_epoch = leader_epoch
        self.is_open = False
        self.producers = ProducerStates(conversions.memory.producers)
        self.compaction = PartitionCompaction(conversions)
        self._verification = verification or Verification()
        self._open_log = open_log
        self._opening = Opening()
        self._notified_of = 0
        self.found: LogSummary | None = None
        """What the log was found to hold while it is closed: see `measure_all`."""

    @property
    def edition(self) -> tuple[int, int]:
        """What was read of another edition may not be what the log has now: it was reopened, or
        compacted.
        """
        return self.leader_epoch, self._log.replacements

    @classmethod
    async def open(
        cls,
        topic: OwnTopic,
        index: int,
        partition_id: int,
        log: Log,
        conversions: ConversionCache,
        open_log: OpenLog | None = None,
        verification: Verification | None = None,
    ) -> Partition:
        """Return the partition of a log that is open, with what is remembered of its batches;
        `open_log` is for a time after that. Raises LogReadError.
        """

        async def given(_partition: Partition) -> Log:
            return log

        what = topic, index, partition_id
        made = cls(*what, log.leader_epoch, given, conversions, verification)
        await made._open()
        made._open_log = open_log or given
        return made

    async def opened(self) -> None:
        """Return once the log is open; whoever comes first has it opened.

        Raises UnknownTopicError and, where it can't be opened, LogNotOpenError. It is tried again
        for those who ask a moment later.
        """
        if self.is_open:
            return
        self._check_alive()
        await self._opening.tried(self._open, self.name)
        self._check_alive()
        if not self.is_open:
            raise LogNotOpenError(f"{self.name} can't be opened")

    @property
    def has_failed(self) -> bool:
        """Whether a flush has failed, so that nothing is written before the log is reopened."""
        return self.is_open and isinstance(self._log.failure, LogFailedError)

    @property
    def summary(self) -> LogSummary | None:
        """What the log holds for readers; None where it is closed, and not measured."""
        if not self.is_open:
            return self.found
        sizes = self._log.segment_count, self._log.size_bytes
        return LogSummary(*sizes, self._log.start_offset, self.safe_offset)

    @property
    def segment_extents(self) -> list[SegmentExtent]:
        """In which pieces the log is stored."""
        return self._log.segment_extents

    def append(self, parts: Sequence[Buffer], header: BatchHeader | None = None) -> int:
        """Put one batch in line to be written and return its base offset.

        `parts[0]` starts with the header, which may be given parsed too; it is writable, and is
        stamped in place, with the time too where the topic's messages have that of appending. The
        caller has checked the batch's checksum and count, and by `producers.named` that it is none
        of those again. What an idempotent producer repeats is not written again: its first offset
        is returned. Calls are written in their order. The caller asks for `durable` or `written` in
        the same turn: where the write fails, the batch is gone.

        Raises UnknownTopicError, LogFailedError, and what `TopicConfig.check_batch`,
        `ProducerStates.check`, `PartitionTransactions.check` and, of a batch of a transaction,
        `Verification.verify` raise.
        """
        self._check_alive()
        header = header or read_header(parts[0])
        self.topic.config.check_batch(header)
        duplicate = self.producers.check(header)
        if duplicate is not None:
            return duplicate.offset
        if header.attributes & ATTRIBUTE_TRANSACTIONAL or header.producer_id >= 0:
            self._check_transaction(header)
        return self._put(parts, header)

    def append_at(self, base_offset: int, batch: Buffer, header: BatchHeader | None) -> None:
        """Put a batch in line at an offset from the end on, behind a batch without records where
        it is further on; without a header only that. The caller has checked it: it is of no
        producer, and its times stay. What `append` says of `durable` holds for this, too.

        Raises UnknownTopicError, LogNotOpenError, LogFailedError and InvalidBatchError.
        """
        self._check_alive()
        assert base_offset >= self._log.end_offset, "the caller has looked"
        if base_offset > self._log.end_offset:
            gap = build_gap(Magic.KAFKA, self._log.end_offset, base_offset, self.leader_epoch)
            self._log.append([gap], read_header(gap))
        if header is not None:
            self._log.append([batch], header)

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> int:
        """Put the marker in line that ends a producer's transaction, and return its offset.

        It is written whether or not a transaction is open here: after a crash nobody else knows.
        A higher epoch fences what the producer may still send (KIP-890). The caller asks for
        `durable` in the same turn, and tries again where that fails. Raises UnknownTopicError,
        LogNotOpenError, LogFailedError.
        """
        self._check_alive()
        marker = end_marker(
            producer_id, producer_epoch, committed=committed, coordinator_epoch=coordinator_epoch
        )
        return self._put([marker], read_header(marker))

    def _check_transaction(self, header: BatchHeader) -> None:
        is_transactional = header.attributes & ATTRIBUTE_TRANSACTIONAL
        if is_transactional or header.producer_id in self.transactions.open:
            self.transactions.check(header)
            self._verification.verify(header.producer_id, header.producer_epoch, self.id)

    def _put(self, parts: Sequence[Buffer], header: BatchHeader) -> int:
        if self.topic.config.stamps_append_time:
            header = stamp_append_time(parts, wall_clock.now_ms())
        base_offset = self._log.append(parts, header)
        if self._listeners:
            self._conversions.latest.keep(self._log, parts, header, base_offset)
        if header.producer_id != NO_PRODUCER_ID:
            self.producers.appended(header, base_offset, self._log.written_offset, parts[0])
            if header.attributes & ATTRIBUTE_TRANSACTIONAL:
                self.transactions.appended(header, base_offset, parts[0])
        return base_offset

    def durable(self, offset: int) -> Outcome:
        """Done when the batch at `offset` may be acknowledged as the topic's flush policy says.

        For whoever waits for no flush there is `written`. Fails with LogWriteError when the batch
        could not be written and LogFailedError when it did not reach stable storage.
        """
        if self.topic.config.flush is Flush.ACKNOWLEDGED:
            return self._log.flushed(offset)
        return self.written(offset)

    def written(self, offset: int) -> Outcome:
        """Done when the operating system has the batch at `offset`; it is safe soon after.

        Fails with LogWriteError and LogFailedError.
        """
        if self.topic.config.flush is Flush.ACKNOWLEDGED:
            # A reader that waits at the end waits for the flush.
            self._log.flush_soon(at_once=bool(self._listeners))
        return self._log.written(offset)

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called as `Followed` says; what it will read is flushed at once."""
        super().add_listener(listener)
        if self.is_open and self.safe_offset < self.end_offset:
            self._log.flush_soon(at_once=True)

    def flushed(self) -> Outcome:
        """Done when all that was appended is on stable storage, whatever the flush policy.

        Fails with LogFailedError.
        """
        if self._log.end_offset == self._log.start_offset:
            return Outcome.known()
        return self._log.flushed(self._log.end_offset - 1)

    async def trim(self, offset: int) -> None:
        """Give up the messages below `offset`, which is the start offset from now on, also after a
        crash. A batch that it is in the middle of stays whole until all of it is given up.

        It goes on to its end even where the caller is cancelled. Raises UnknownTopicError,
        LogNotOpenError, OffsetOutOfRangeError above the readable end, LogWriteError where the disk
        does not take the new start for now, and LogFailedError.
        """
        await uninterrupted(self._trim(offset), f"trimming {self.name}", refusals=LogError)

    async def _trim(self, offset: int) -> None:
        self._check_alive()
        await self.opened()
        end = self.readable_end(Isolation.READ_UNCOMMITTED)
        if offset > end:
            raise OffsetOutOfRangeError(offset, self.start_offset, end)
        await self._log.trim(offset)
        self._conversions.trim(self._log)
        self.transactions.trim(offset)
        self.unseen.trim(offset)
        await self._notify_of_trim()

    async def bytes_behind(self, offset: int) -> int:
        """Return how many bytes are stored from the batch with `offset` on. Raises LogError."""
        return await self._log.bytes_behind(offset)

    def stored_segments(self) -> AsyncGenerator[StoredSegment, None]:
        """Yield what a part of the log holds after the other, the oldest first. Raises LogError."""
        return self._log.stored_segments()

    def reconfigured(self) -> None:
        """The topic has another configuration: more may be safe now, or has to become so."""
        if self.is_open:
            self._log.reconfigure(self.topic.config.log)
            if self.safe_offset < self.end_offset:
                self._log.flush_soon()
        self._notify()

    def forget(self) -> None:
        """The topic is gone: give back what is kept for readers, and wake the waiters."""
        assert self.deleted, "it was refused from before its rows were gone"
        self._conversions.forget(self._log)
        self.producers.close()
        self.compaction.close()
        self.transactions.close()
        self.unseen.clear()
        self._notify()

    @property
    def files(self) -> list[Path]:
        """Files that are there as long as the log is open and not deleted."""
        return [] if self.deleted else self._log.files

    def lose(self, file: Path) -> None:
        """Close the log: a file of it was removed, and what came next would be too."""
        logger.error(
            "%s is closed: %s was removed; `penstock recover` shows what can be done",
            *(self.name, file),
        )
        self._log.abandon()
        self._conversions.forget(self._log)
        self._notify()

    async def abandon(self) -> None:
        """Close the log without a flush; when this returns, its folder may be removed."""
        await self._opening.ended()
        if self.is_open:
            self._log.abandon()
            await self._log.released()

    async def finish(self) -> None:
        """Flush and write a checkpoint, so that `close` has nothing left to do. Raises LogError."""
        await self._opening.ended()
        if self.is_open:
            await self._log.finish()

    async def reopen(self, leader_epoch: int) -> None:
        """Go on after a flush has failed, with what is really on the disk, at a new epoch.

        Raises UnknownTopicError and LogNotOpenError.
        """
        assert self.has_failed, "a log that is well stays open"
        failed = self._log
        self._opening.again()
        failed.abandon()
        await failed.released()
        self._conversions.forget(failed)
        self.leader_epoch = leader_epoch
        self.is_open = False
        self._log = unopened()
        await self.opened()
        self._notify()

    def close(self) -> None:
        """Flush what is left and close the log. Blocks."""
        if self.is_open:
            self._log.close()

    async def _open(self) -> None:
        log = await self._open_log(self)
        states: dict[str, BatchState] = {
            "producers": self.producers,
            "transactions": self.transactions,
            "named-producers": self.producers.named,
            "leader-epochs": self._leader_epochs,
        }
        await replay(log, states, self.name)
        self.compaction.open(log)
        self.transactions.compacted(self.compaction.known.cleaned_to)
        self.transactions.trim(log.start_offset)
        self.unseen.clear()
        self._leader_epochs.begin(log.leader_epoch, log.end_offset)
        self._log = log
        self._reader = BatchReader(log, self._conversions)
        self._notified_of = self.safe_offset
        self.found = None
        log.watch(self._log_advanced, self._log_cut)
        self.is_open = True
        if self.transactions.open:
            self._verification.log_opened(self.id, self.transactions.open.values())

    def _log_advanced(self) -> None:
        if (end := self.safe_offset) > self._notified_of:
            self._notified_of = end
            # Not when somebody reads: maybe nobody does.
            self.transactions.settle(end)
            self._notify()

    def _log_cut(self, end_offset: int) -> None:
        self.producers.cut(end_offset)
        self.transactions.cut(end_offset)
        self._conversions.latest.forget(self._log)
