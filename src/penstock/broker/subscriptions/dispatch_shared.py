"""Shared: batches go round the consumers that have permits; what comes back goes out first."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from penstock.broker.reading.entries import ONE_BATCH, READ_BYTES, EntryReader
from penstock.broker.subscriptions.chunk_owners import ChunkOwners
from penstock.broker.subscriptions.dispatch import Dispatcher
from penstock.log.header import Magic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from penstock.broker.reading.entries import Entry
    from penstock.broker.subscriptions.cursor import Cursor
    from penstock.broker.subscriptions.deliveries import Consumer, Delivery
    from penstock.broker.topics.partition import Partition

BATCHES_PER_TURN: Final = 20
"""Batches that a consumer gets before the next one has its turn (Pulsar's
dispatcherMaxRoundRobinBatchSize)."""


class SharedDispatcher(Dispatcher):
    """Keeps what has to be sent again, in order of offset, and how often each batch came back."""

    def __init__(
        self,
        partition: Partition,
        cursor: Cursor,
        magic: Magic,
        *,
        changed: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        super().__init__(partition, cursor, magic, changed=changed, failed=failed)
        self._returned: dict[int, int] = {}
        self._order: list[int] = []
        self._redeliveries: dict[int, int] = {}
        self._again = EntryReader(partition, cursor.position, magic, self._skipped)
        self._chunks = ChunkOwners()

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        for offset in list(self.outstanding.of(consumer)) if offsets is None else offsets:
            sent = self.outstanding.get(offset)
            if sent is not None and sent.consumer is consumer:
                self._redeliveries[offset] = self._redeliveries.get(offset, 0) + 1
                self._take_back(offset)
        self.wake()

    def acknowledged(self, offset: int) -> None:
        if self.outstanding.settle(offset, self._cursor):
            self._redeliveries.pop(offset, None)
        self.wake()  # A consumer that held too many may go on.

    def acknowledged_below(self) -> None:
        raise AssertionError("a shared subscription has no cumulative acknowledgement")

    def _consumers_changed(self, gone: Consumer | None) -> None:
        if gone is not None:
            self._chunks.forget(gone)
            # Not counted as a redelivery: the message may never have been seen.
            for offset in list(self.outstanding.of(gone)):
                self._take_back(offset)

    async def _turn(self) -> bool:
        if not self._ready() or self._partition.deleted:
            return False
        entries = await self._replay() if self._drop_settled() else await self._fresh()
        ready = self._ready()  # Anew: reading may have taken its time.
        if not ready:
            return False
        self._share_out(entries, min(ready, key=lambda consumer: consumer.priority))
        return bool(self._returned) or self._reader.position < self._partition.end_offset

    def _share_out(self, entries: Iterator[Entry], consumer: Consumer) -> None:
        """Send a turn's worth of entries to one consumer, but for chunks that belong to others."""
        shares: dict[Consumer, list[Delivery]] = {}
        for entry in entries:
            owner = self._chunks.owner(entry, consumer)
            delivery = self._delivery(owner, entry, self._count(entry))
            if delivery is not None:
                shares.setdefault(owner, []).append(delivery)
            if consumer.permits <= 0 or sum(map(len, shares.values())) >= BATCHES_PER_TURN:
                break
        for owner, deliveries in shares.items():
            self._send(owner, deliveries)
            # Who was served stands behind the others now.
            self.consumers.remove(owner)
            self.consumers.append(owner)

    def _ready(self) -> list[Consumer]:
        return [c for c in self.consumers if c.can_take and not c.holds_too_many]

    async def _fresh(self) -> Iterator[Entry]:
        await self._reader.fill()
        return iter(self._reader.take, None)

    async def _replay(self) -> Iterator[Entry]:
        first = self._order[0]
        followed = self._returned[first] in self._returned
        self._again.rewind(first)
        await self._again.fill(READ_BYTES if followed else ONE_BATCH)
        return self._returned_among(iter(self._again.take, None))

    def _returned_among(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            # It leaves the returned ones only now that somebody takes it.
            if self._returned.pop(entry.header.base_offset, None) is not None:
                yield entry

    def _drop_settled(self) -> bool:
        """Let go of what was acknowledged or sent meanwhile; return whether anything is left."""
        while self._order:
            offset = self._order[0]
            end = self._returned.get(offset)
            if end is not None and self._cursor.open_mask(offset, end):
                return True
            if end is not None:
                del self._returned[offset]
                self._redeliveries.pop(offset, None)
            heapq.heappop(self._order)
        return False

    def _take_back(self, offset: int) -> None:
        sent = self.outstanding.remove(offset)
        assert sent is not None, "only what a consumer has comes back"
        if offset not in self._returned:
            heapq.heappush(self._order, offset)
        self._returned[offset] = sent.end

    def _count(self, entry: Entry) -> int:
        return self._redeliveries.get(entry.header.base_offset, 0)
