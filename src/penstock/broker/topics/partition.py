"""One partition: the only door to its log, for the producers and the readers of all protocols."""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownTopicError
from penstock.broker.producers.idempotence import ProducerStates
from penstock.broker.settings import Flush
from penstock.log.commit import durable_already
from penstock.log.header import NO_PRODUCER_ID, read_header

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.broker.topics.topic import Topic
    from penstock.log import Log
    from penstock.log.header import BatchHeader, Magic
    from penstock.session import Buffer

logger = logging.getLogger(__name__)


class Isolation(Enum):
    """How much of a partition a reader sees (KIP-98)."""

    READ_UNCOMMITTED = auto()
    """All that is safe."""
    READ_COMMITTED = auto()
    """What is safe up to the first message of a transaction that is open."""


class Partition:
    """All methods belong to the event loop's thread. `index` counts from 0 within the topic.

    `id` is unique among all partitions that ever were; Pulsar clients know it as the ledger id.
    """

    def __init__(
        self, topic: Topic, index: int, partition_id: int, log: Log, conversions: ConversionCache
    ) -> None:
        self.topic = topic
        self.index = index
        self.id = partition_id
        self.deleted = False
        self.producers = ProducerStates()
        self._log = log
        self._conversions = conversions
        self._listeners: list[Callable[[], None]] = []
        self._restore_producers()
        log.snapshot = self.producers.snapshot

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        """The next offset to be written."""
        return self._log.end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all stored batches."""
        return self._log.size_bytes

    @property
    def segment_count(self) -> int:
        return self._log.segment_count

    def readable_end(self, isolation: Isolation) -> int:
        """The first offset that a reader of this isolation does not see yet.

        It is Kafka's high watermark, or its last stable offset.
        """
        del isolation  # No transaction is ever open.
        return self._log.end_offset

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write one batch to the page cache and return its base offset.

        `parts[0]` starts with the header, is writable, and is stamped in place. The caller has
        checked the batch's checksum and count. A batch that an idempotent producer repeats is not
        written again: its first offset is returned. Calls are written in their order, so a session
        may append several batches and then await `durable` for all of them.

        Raises UnknownTopicError, OutOfOrderSequenceError, InvalidProducerEpochError and
        LogFailedError.
        """
        self._check_alive()
        header = read_header(parts[0])
        duplicate = self.producers.check(header)
        if duplicate is not None:
            return duplicate.offset
        base_offset = self._log.append(parts)
        if header.producer_id != NO_PRODUCER_ID:
            self.producers.update(header._replace(base_offset=base_offset))
        self._notify()
        return base_offset

    def durable(self, offset: int) -> asyncio.Future[None]:
        """Done when the batch at `offset` may be acknowledged as the topic's flush policy says.

        Fails with LogFailedError when it did not reach stable storage.
        """
        if self.topic.flush is Flush.ACKNOWLEDGED:
            return self._log.flushed(offset)
        return durable_already()

    def flushed(self) -> asyncio.Future[None]:
        """Done when all that was appended is on stable storage, whatever the flush policy.

        Fails with LogFailedError.
        """
        if self._log.end_offset == self._log.start_offset:
            return durable_already()
        return self._log.flushed(self._log.end_offset - 1)

    async def read(
        self,
        offset: int,
        max_bytes: int,
        magic: Magic,
        isolation: Isolation = Isolation.READ_COMMITTED,
    ) -> list[Buffer]:
        """Return whole batches in the encoding of `magic`, from the one that contains `offset` on.

        Batches that were written in that encoding are views of the stored bytes; the others are
        converted and keep their offsets. Empty where `offset` is the readable end. The first
        batch is returned whatever its size, the others fit in `max_bytes` (KIP-74).

        Raises UnknownTopicError, OffsetOutOfRangeError, and where `offset` is in a batch that can't
        be read, CorruptBatchError or MalformedBatchError.
        """
        self._check_alive()
        if offset == self.readable_end(isolation):
            return []
        return await self._conversions.read(self._log, offset, max_bytes, magic)

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end.

        Raises OffsetOutOfRangeError, CorruptBatchError and LogReadError.
        """
        return self._log.batch_at(offset)

    async def at_time(self, timestamp_ms: int, start: int | None = None) -> int | None:
        """Return the base offset of the first batch, from the one at `start` on, that has a message
        of this time or later as far as its header says; None where there is none.

        Raises LogReadError.
        """
        if start is None:
            return self._log.find_time(timestamp_ms)
        for header in self._log.headers(start):
            if header.max_timestamp >= timestamp_ms:
                return header.base_offset
        return None

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called after every append, and when the topic is deleted."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def forget(self) -> None:
        """The topic is gone: refuse what comes, and wake the waiters."""
        self.deleted = True
        self._conversions.forget(self._log)
        self._notify()

    def abandon(self) -> None:
        """Close the log without a flush: it is about to be removed. Blocks while a flush runs."""
        self._log.abandon()

    async def finish(self) -> None:
        """Flush and write a checkpoint, so that `close` has nothing left to do. Raises LogError."""
        await self._log.finish()

    def close(self) -> None:
        """Flush what is left and close the log. Blocks."""
        self._log.close()

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _check_alive(self) -> None:
        if self.deleted:
            raise UnknownTopicError(f"topic {self.topic.name.kafka} was deleted")

    def _restore_producers(self) -> None:
        replayed_from = self._log.checkpoint_offset
        try:
            self.producers.restore(self._log.checkpoint_state)
        except ValueError as error:
            logger.warning("%s: read from its beginning, for %s", self._log.directory, error)
            replayed_from = self._log.start_offset
        for header in self._log.headers(replayed_from):
            self.producers.update(header)
