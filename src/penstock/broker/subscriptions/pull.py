"""Consumers that ask: each gets the next messages for a time, and says what became of them.

What Kafka's share groups do (KIP-932), on the state that messages are pushed from.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.errors import InvalidRecordStateError
from penstock.broker.subscriptions.bitmaps import runs
from penstock.broker.subscriptions.upcoming import Upcoming

if TYPE_CHECKING:
    from penstock.broker.clock import Clock
    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.subscriptions.leases import Holder
    from penstock.broker.topics.partition import Partition
    from penstock.log.header import Magic


class Acquired(NamedTuple):
    """The open messages from `start` up to `end` of one batch, delivered `deliveries` times."""

    entry: AnyEntry
    start: int
    end: int
    deliveries: int


class Pull:
    """`lock_seconds` is how long messages are a consumer's own; then others get them.

    A lock that is over ends when somebody next asks or answers. Raises InvalidRecordStateError
    where a consumer speaks of messages that it does not hold; nothing is changed then.
    """

    def __init__(
        self, partition: Partition, engine: Engine, magic: Magic, clock: Clock, lock_seconds: float
    ) -> None:
        self._partition = partition
        self._engine = engine
        self._upcoming = Upcoming(partition, engine, magic)
        self._clock = clock
        self._lock_seconds = lock_seconds
        # Two that ask at once take turns at reading.
        self._acquiring = asyncio.Lock()

    async def acquire(self, holder: Holder, messages_max: int) -> list[Acquired]:
        """Return the next messages, which are locked now; none where none waits.

        Those of a batch may be given in parts.
        """
        acquired: list[Acquired] = []
        async with self._acquiring:
            self._engine.expire(self._clock.time())
            while messages_max > 0 and self._upcoming.has_more and not self._partition.deleted:
                entries = await self._upcoming.entries()
                if not self._engine.has_room() and not self._engine.has_little(holder):
                    break
                deadline = self._clock.time() + self._lock_seconds
                for entry in entries:
                    if entry is None:
                        continue  # Each is acquired before the next is taken.
                    taken = self._lock(holder, entry, messages_max, deadline)
                    acquired += taken
                    messages_max -= sum(each.end - each.start for each in taken)
                    if not messages_max:
                        break
        return acquired

    def acknowledge(self, holder: Holder, start: int, end: int) -> None:
        """Messages are dealt with."""
        self._check(holder, start, end)
        self._engine.acknowledge(start, end)

    def release(self, holder: Holder, start: int, end: int) -> None:
        """Messages are to be delivered again, to whoever asks next."""
        self._check(holder, start, end)
        self._engine.release(holder, start, end)

    def reject(self, holder: Holder, start: int, end: int) -> None:
        """Messages can't be dealt with and are never delivered again."""
        self.acknowledge(holder, start, end)

    def leave(self, holder: Holder) -> None:
        """Take back what a consumer holds, which may never have seen it."""
        self._engine.release_all(holder, counted=False)

    def _lock(
        self, holder: Holder, entry: AnyEntry, messages_max: int, deadline: float
    ) -> list[Acquired]:
        """Lease the open messages of a batch, or the first of them."""
        start, end = self._upcoming.available(entry)
        taken = []
        for low, high in runs(self._engine.open_mask(start, end)):
            count = min(high - low, messages_max)
            part = start + low, start + low + count
            share = self._engine.acquire(holder, *part, deadline)
            assert share is not None, "what is open can be acquired"
            taken.append(Acquired(entry, *part, share.deliveries))
            messages_max -= count
            if not messages_max:
                return taken
        self._engine.pass_over(end)
        return taken

    def _check(self, holder: Holder, start: int, end: int) -> None:
        """Check that a consumer holds all of a range, and nothing of it is acknowledged."""
        self._engine.expire(self._clock.time())
        held = sum(
            self._engine.open_count(max(start, lease.start), min(end, lease.end))
            for lease in self._engine.leases.overlapping(start, end)
            if lease.holder is holder
        )
        if start >= end or held < end - start:
            raise InvalidRecordStateError(
                f"{holder.name} does not hold the messages {start} to {end - 1}"
            )
