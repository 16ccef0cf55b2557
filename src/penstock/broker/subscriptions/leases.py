"""Who holds which messages, until when, and how often they were delivered.

A lease is a range of offsets, and a whole batch is one lease. What is acknowledged inside a lease
is in the cursor and only counted here, so that acknowledgements in any order cost no memory; a
lease is cut only where a part of it is given back.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import TYPE_CHECKING

from penstock.broker.subscriptions.bitmaps import BLOCK, blocks_between

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Holder:
    """Somebody who may hold messages; `unacknowledged` of them are open."""

    __slots__ = ("leases", "name", "unacknowledged")

    def __init__(self, name: str) -> None:
        self.name = name
        self.unacknowledged = 0
        self.leases: dict[int, Lease] = {}
        """By their starts."""


class Lease:
    """The offsets from `start` up to `end`, of which `open_count` are not acknowledged.

    `deliveries` counts this one too. At `deadline`, in seconds of the owner's clock, the lease is
    over; None is never.
    """

    __slots__ = ("deadline", "deliveries", "end", "holder", "open_count", "start")

    def __init__(
        self,
        start: int,
        end: int,
        holder: Holder,
        deliveries: int,
        deadline: float | None,
        open_count: int,
    ) -> None:
        self.start = start
        self.end = end
        self.holder = holder
        self.deliveries = deliveries
        self.deadline = deadline
        self.open_count = open_count


class Leases:
    """The leases of one partition's messages to one subscription; none overlaps another.

    Each is listed in every block of offsets that it touches, so that the leases of a range are
    found in a time that does not depend on how many there are.
    """

    def __init__(self) -> None:
        # Ordered, because a dict finds its first key ever more slowly as first keys are removed.
        self._by_start: OrderedDict[int, Lease] = OrderedDict()
        self._blocks: dict[int, list[int]] = {}
        self._deadlines: list[tuple[float, int]] = []
        self.unacknowledged = 0
        """How many messages are open in all leases."""

    def __len__(self) -> int:
        return len(self._by_start)

    @property
    def oldest(self) -> Lease | None:
        """The lease that was added first."""
        return next(iter(self._by_start.values()), None)

    def get(self, start: int) -> Lease | None:
        """Return the lease that begins at an offset."""
        return self._by_start.get(start)

    def overlapping(self, start: int, end: int) -> list[Lease]:
        """Return the leases of which a part lies between two offsets, in order of offset."""
        lease = self._by_start.get(start)
        if lease is not None and start < end <= lease.end:
            return [lease]
        if start >= end:
            return []
        found: dict[int, Lease] = {}
        for number in blocks_between(self._blocks, start, end):
            starts = self._blocks.get(number, ())
            # The one that begins last before `start` may reach into the range.
            first = max(bisect_right(starts, start) - 1, 0)
            for at in starts[first : bisect_left(starts, end, first)]:
                lease = self._by_start[at]
                if lease.end > start:
                    found[at] = lease
        return list(found.values())

    def add(self, lease: Lease) -> None:
        assert lease.open_count > 0, "what is acknowledged is not leased"
        assert lease.start not in self._by_start, "a message has one holder"
        self._by_start[lease.start] = lease
        lease.holder.leases[lease.start] = lease
        lease.holder.unacknowledged += lease.open_count
        self.unacknowledged += lease.open_count
        for number in _blocks_of(lease):
            starts = self._blocks.get(number)
            if starts is None:
                self._blocks[number] = [lease.start]
            else:
                insort(starts, lease.start)
        if lease.deadline is not None:
            heapq.heappush(self._deadlines, (lease.deadline, lease.start))

    def remove(self, lease: Lease) -> None:
        """End a lease, whatever became of its messages."""
        removed = self._by_start.pop(lease.start)
        assert removed is lease, "a lease is removed once"
        del lease.holder.leases[lease.start]
        lease.holder.unacknowledged -= lease.open_count
        self.unacknowledged -= lease.open_count
        for number in _blocks_of(lease):
            starts = self._blocks[number]
            del starts[bisect_left(starts, lease.start)]
            if not starts:
                del self._blocks[number]

    def settle(self, lease: Lease, count: int) -> None:
        """Count messages of a lease that are acknowledged now; without an open one it ends."""
        assert 0 <= count <= lease.open_count, "a message is acknowledged once"
        if count == lease.open_count:
            self.remove(lease)
            return
        lease.open_count -= count
        lease.holder.unacknowledged -= count
        self.unacknowledged -= count

    def over(self, now: float) -> Iterator[Lease]:
        """Go through the leases whose deadline has come; they are to be removed."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, start = heapq.heappop(self._deadlines)
            lease = self._by_start.get(start)
            if lease is not None and lease.deadline == deadline:
                yield lease

    def clear(self) -> None:
        for lease in self._by_start.values():
            lease.holder.unacknowledged -= lease.open_count
            lease.holder.leases.clear()
        self.unacknowledged = 0
        self._by_start.clear()
        self._blocks.clear()
        self._deadlines.clear()


def _blocks_of(lease: Lease) -> Iterable[int]:
    first, last = lease.start // BLOCK, (lease.end - 1) // BLOCK
    return (first,) if first == last else range(first, last + 1)
