"""Where readers of a partition find nothing, as reads have found out: a stretch of aborted messages
and markers, or what compaction has left. Whoever comes there next need not read it once more.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.memory import Holding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.memory import SharedAccount
    from penstock.records import Encoding

_LEAST: Final = 256
"""Offsets of a range that it is worth while to know, if it lies by itself."""
_RANGE_BYTES: Final = 16


class Unseen:
    """Ranges of offsets, by the encoding in which they were read: what is none in one may be a
    message in another.

    They hold for the log that was read, also once it is compacted, as long as it is open.
    """

    def __init__(self, account: SharedAccount) -> None:
        self._ranges: defaultdict[Encoding, _Ranges] = defaultdict(_Ranges)
        self._account = account
        self._held = Holding(account)

    def note_all(self, encoding: Encoding, ranges: Iterable[tuple[int, int]]) -> None:
        """Do as `note` with each of many, ascending, of which most may be short."""
        if not self._ranges[encoding]:
            ranges = [(start, end) for start, end in ranges if end - start >= _LEAST]
        for start, end in ranges:
            self.note(encoding, start, end)

    def note(self, encoding: Encoding, start: int, end: int) -> None:
        """Remember that a read has found nothing from `start` up to `end`, if there is room."""
        ranges = self._ranges[encoding]
        if end - start >= _LEAST or ranges.meets(start, end):
            if self._account.room(self._held.size) > 0:
                ranges.add(start, end)
            self._count()

    def behind(self, encoding: Encoding, offset: int) -> int:
        """Return where a reader at an offset may go on."""
        ranges = self._ranges.get(encoding)
        return offset if ranges is None else ranges.behind(offset)

    def trim(self, start_offset: int) -> None:
        """Forget what lies below the start of the log."""
        for ranges in self._ranges.values():
            ranges.trim(start_offset)
        self._count()

    def clear(self) -> None:
        """Forget all: the log is opened, or gone."""
        self._ranges.clear()
        self._count()

    def _count(self) -> None:
        self._held.set(_RANGE_BYTES * sum(map(len, self._ranges.values())))


class _Ranges:
    """Ascending, with something between any two of them."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._starts)

    def meets(self, start: int, end: int) -> bool:
        """Whether there is one that another one would become one with."""
        return bisect_left(self._ends, start) < bisect_right(self._starts, end)

    def behind(self, offset: int) -> int:
        number = bisect_right(self._starts, offset) - 1
        return max(offset, self._ends[number]) if number >= 0 else offset

    def add(self, start: int, end: int) -> None:
        """Add one, which becomes one with those that it meets; the shortest goes where there are
        too many.
        """
        first = bisect_left(self._ends, start)
        behind = bisect_right(self._starts, end)
        if first < behind:
            start = min(start, self._starts[first])
            end = max(end, self._ends[behind - 1])
        self._starts[first:behind] = array("q", [start])
        self._ends[first:behind] = array("q", [end])
        if len(self) > limits.UNSEEN_RANGES:
            sizes = [end - start for start, end in zip(self._starts, self._ends, strict=True)]
            number = sizes.index(min(sizes))
            del self._starts[number], self._ends[number]

    def trim(self, start_offset: int) -> None:
        gone = bisect_right(self._ends, start_offset)
        del self._starts[:gone], self._ends[:gone]
