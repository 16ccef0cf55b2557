"""Small batches that were appended while somebody waited for them, kept to be handed out.

Whoever waits at the end of a log is woken for a batch that was in memory a moment ago: to find it
in the file, read it and check it again costs as much as all the rest of its answer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from penstock.limits import LATEST_BATCH_BYTES, LATEST_BATCHES, LATEST_BYTES
from penstock.memory import Holding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log import Log
    from penstock.log.header import BatchHeader
    from penstock.memory import Memory
    from penstock.records import Encoding
    from penstock.session import Buffer


class _Batch(NamedTuple):
    base_offset: int
    next_offset: int
    magic: int
    data: bytes


class LatestBatches:
    """Of all partitions; those of the log that was appended to longest ago go first."""

    def __init__(self, memory: Memory) -> None:
        self._kept: OrderedDict[Log, deque[_Batch]] = OrderedDict()
        """Of each log its last batches, which follow one another."""
        self._held = Holding(memory.caches)
        memory.add_cache(self)

    def keep(
        self, log: Log, parts: Sequence[Buffer], header: BatchHeader, base_offset: int
    ) -> None:
        """Keep a batch that was put in line at `base_offset` just now, if it is small."""
        if header.size > LATEST_BATCH_BYTES:
            return
        batches = self._kept.get(log)
        if batches is None:
            batches = self._kept[log] = deque()
        elif batches[-1].next_offset != base_offset:
            self._drop(batches, len(batches))
        elif len(batches) == LATEST_BATCHES:
            self._drop(batches, 1)
        next_offset = base_offset + header.last_offset_delta + 1
        batches.append(_Batch(base_offset, next_offset, header.magic, b"".join(parts)))
        self._held.grow(header.size)
        self._kept.move_to_end(log)
        while self._held.size > LATEST_BYTES:
            self.forget(next(iter(self._kept)))

    def read(
        self, log: Log, offset: int, max_bytes: int, magic: Encoding, end: int
    ) -> tuple[bytes, int] | None:
        """Return what a read returns from the batch on that begins at `offset`, and where it ends,
        if all of that is here and in the encoding of `magic`.
        """
        batches = self._kept.get(log)
        if batches is None or batches[-1].next_offset != log.end_offset:
            return None
        if offset < log.start_offset:
            return None  # It was trimmed.
        found: list[bytes] = []
        next_offset = offset
        for batch in batches:
            if batch.base_offset < offset:
                continue
            if batch.magic != magic or (not found and batch.base_offset != offset):
                return None
            max_bytes -= len(batch.data)
            if batch.next_offset > end or (found and max_bytes < 0):
                break
            found.append(batch.data)
            next_offset = batch.next_offset
        return (b"".join(found), next_offset) if found else None

    def forget(self, log: Log) -> None:
        """Drop what was kept of a log that is gone, or of which something was taken back."""
        batches = self._kept.pop(log, None)
        if batches is not None:
            self._drop(batches, len(batches))

    def empty(self) -> None:
        """Drop all that was kept; see penstock.memory.Cache."""
        self._kept.clear()
        self._held.set(0)

    def _drop(self, batches: deque[_Batch], count: int) -> None:
        for _ in range(count):
            self._held.grow(-len(batches.popleft().data))
