"""What polls have read last: a poll that goes on there finds it read and checked already.

Clients ask for a few messages at a time, out of batches that may have thousands.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from penstock.iggy.batches import Stored
from penstock.limits import IGGY_KEPT_BYTES
from penstock.log.header import HEADER_SIZE, Magic, read_header, walk
from penstock.memory import Holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.reading.conversion_cache import Taken
    from penstock.broker.reading.unseen import Unseen
    from penstock.broker.topics.partition import Partition
    from penstock.broker.transactions.committed import Committed
    from penstock.memory import Memory


class Run:
    """Stored batches that were read from an offset on; each is looked at when a poll first comes to
    it.

    Of those that are not `committed` nothing is kept but where they end, which is `unseen`.
    `edition` is the partition's before they were read.
    """

    __slots__ = ("_batches", "_last_offsets", "_rest", "edition", "size", "start")

    def __init__(
        self,
        taken: Taken,
        offset: int,
        edition: tuple[int, int],
        committed: Committed,
        unseen: Unseen,
    ) -> None:
        self.edition = edition
        self.size = sum(map(len, taken.parts))
        self.start = min(offset, read_header(taken.parts[0]).base_offset)
        self._rest = _batches(taken, self.start, committed, unseen)
        self._last_offsets: list[int] = []
        self._batches: list[Stored] = []

    @property
    def end(self) -> int:
        """The offset behind the last batch that a poll came to."""
        return self._last_offsets[-1] + 1 if self._last_offsets else self.start

    def batches(self, offset: int) -> Iterator[Stored]:
        """Yield each batch, from the one with `offset` on."""
        number = bisect_left(self._last_offsets, offset)
        while True:
            if number == len(self._batches):
                found = next(self._rest, None)
                if found is None:
                    return
                self._last_offsets.append(found.last_offset)
                self._batches.append(found)
            batch = self._batches[number]
            if batch.last_offset >= offset:
                yield batch
            number += 1


class Kept:
    """One run a partition, of those that were polled last."""

    def __init__(self, memory: Memory) -> None:
        self._runs: dict[int, Run] = {}
        self._held = Holding(memory.caches)
        memory.add_cache(self)

    def find(self, partition: Partition, offset: int) -> Run | None:
        """Return what begins at an offset or before; it may end before that too."""
        run = self._runs.get(partition.id)
        if run is None or offset < run.start:
            return None
        return run if run.edition == partition.edition else None

    def keep(self, partition: Partition, run: Run) -> None:
        """Have a run in place of the one that a partition had."""
        self._drop(partition.id)
        if run.size > IGGY_KEPT_BYTES:
            return
        self._runs[partition.id] = run
        self._held.grow(run.size)
        while self._held.size > IGGY_KEPT_BYTES:
            self._drop(next(iter(self._runs)))

    def empty(self) -> None:
        """Drop all that was kept; see penstock.memory.Cache."""
        self._runs.clear()
        self._held.set(0)

    def _drop(self, partition_id: int) -> None:
        run = self._runs.pop(partition_id, None)
        if run is not None:
            self._held.grow(-run.size)


def _batches(taken: Taken, start: int, committed: Committed, unseen: Unseen) -> Iterator[Stored]:
    """Yield each batch, and one without messages for those that follow one another and have none
    for readers.
    """
    seen_to = start
    for stored in taken.parts:
        view = memoryview(stored)
        for position, header in walk(view):
            if header.size == HEADER_SIZE or committed.hides(header):
                continue
            if seen_to < header.base_offset:
                yield _none(seen_to, header.base_offset, unseen)
            body = view[position + HEADER_SIZE : position + header.size]
            yield Stored.of(header.last_offset, body)
            seen_to = header.next_offset
    if seen_to < taken.next_offset:
        yield _none(seen_to, taken.next_offset, unseen)


def _none(start: int, end: int, unseen: Unseen) -> Stored:
    unseen.note(Magic.IGGY, start, end)
    return Stored(end - 1, None, memoryview(b""))
