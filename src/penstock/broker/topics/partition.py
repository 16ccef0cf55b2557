"""One partition: a log, the producers that write to it and the readers that wait for it."""

from __future__ import annotations

import logging
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
    from penstock.log.header import Magic
    from penstock.session import Buffer

_logger = logging.getLogger(__name__)


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
        self.log = log
        self.deleted = False
        self.producers = ProducerStates()
        self._conversions = conversions
        self._listeners: list[Callable[[], None]] = []
        self._restore_producers()
        log.snapshot = self.producers.snapshot

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
        base_offset = self.log.append(parts)
        if header.producer_id != NO_PRODUCER_ID:
            self.producers.update(header._replace(base_offset=base_offset))
        self._notify()
        return base_offset

    def durable(self, offset: int) -> asyncio.Future[None]:
        """Done when the batch at `offset` may be acknowledged as the topic's flush policy says.

        Fails with LogFailedError when it did not reach stable storage.
        """
        if self.topic.flush is Flush.ACKNOWLEDGED:
            return self.log.flushed(offset)
        return durable_already()

    async def read(self, offset: int, max_bytes: int, magic: Magic) -> list[Buffer]:
        """Return whole batches in the encoding of `magic`, from the one that contains `offset` on.

        Batches that were written in that encoding are views of the stored bytes; the others are
        converted and keep their offsets. Empty when nothing was written from `offset` on. The first
        batch is returned whatever its size, the others fit in `max_bytes` (KIP-74).

        Raises UnknownTopicError, OffsetOutOfRangeError, and where `offset` is in a batch that can't
        be read, CorruptBatchError or MalformedBatchError.
        """
        self._check_alive()
        return await self._conversions.read(self.log, offset, max_bytes, magic)

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called after every append, and when the topic is deleted."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def forget(self) -> None:
        """The topic is gone: refuse what comes, and wake who waits."""
        self.deleted = True
        self._conversions.forget(self.log)
        self._notify()

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _check_alive(self) -> None:
        if self.deleted:
            raise UnknownTopicError(f"topic {self.topic.name.kafka} was deleted")

    def _restore_producers(self) -> None:
        replayed_from = self.log.checkpoint_offset
        try:
            self.producers.restore(self.log.checkpoint_state)
        except ValueError as error:
            _logger.warning("%s: read from its beginning, for %s", self.log.directory, error)
            replayed_from = self.log.start_offset
        for header in self.log.headers(replayed_from):
            self.producers.update(header)
