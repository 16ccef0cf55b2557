"""What one subscription has acknowledged of one partition.

A message's position is its offset in the log, so that an acknowledged batch and an acknowledged
message inside a batch are the same thing: a range of offsets.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cursor:
    """Everything below `position` is acknowledged, and so are the ranges above it.

    Ranges are kept sorted, apart from each other and from `position`.
    """

    __slots__ = ("_ends", "_starts", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def acknowledged_above(self) -> int:
        """How many offsets above `position` are acknowledged."""
        return sum(self._ends) - sum(self._starts)

    @property
    def ranges(self) -> Iterator[tuple[int, int]]:
        """The acknowledged ranges above `position`, ends excluded."""
        return zip(self._starts, self._ends, strict=True)

    def acknowledge(self, start: int, end: int) -> None:
        """Mark the offsets from `start` up to but not including `end`."""
        if end <= max(start, self.position):
            return
        if start <= self.position:
            self.acknowledge_below(end)
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def acknowledge_below(self, end: int) -> None:
        """Mark every offset below `end`."""
        if end <= self.position:
            return
        swallowed = bisect_right(self._starts, end)
        if swallowed:
            end = max(end, self._ends[swallowed - 1])
            del self._starts[:swallowed]
            del self._ends[:swallowed]
        self.position = end

    def open_mask(self, start: int, end: int) -> int:
        """Return which offsets of a batch are still open: bit i stands for offset `start` + i."""
        mask = (1 << (end - start)) - 1
        if start < self.position:
            mask &= -1 << (min(self.position, end) - start)
        index = bisect_right(self._ends, start)
        while index < len(self._starts) and self._starts[index] < end:
            low, high = max(self._starts[index], start), min(self._ends[index], end)
            mask &= ~(((1 << (high - low)) - 1) << (low - start))
            index += 1
        return mask

    def is_untouched(self, start: int, end: int) -> bool:
        """Whether no offset of a batch is acknowledged: the cheap test before `open_mask`."""
        if start < self.position:
            return False
        index = bisect_right(self._ends, start)
        return index == len(self._starts) or self._starts[index] >= end

    def reset(self, position: int) -> None:
        """Go to `position` and forget what was acknowledged above it."""
        self.position = position
        self._starts.clear()
        self._ends.clear()

    def cut_off(self, end: int) -> bool:
        """Forget what lies at or above `end`; return whether anything did.

        A crash can take back messages that were delivered and acknowledged but not yet flushed. New
        messages then get their offsets, and must not count as acknowledged.
        """
        kept = bisect_left(self._starts, end)
        over = kept < len(self._starts) or (kept > 0 and self._ends[kept - 1] > end)
        del self._starts[kept:]
        del self._ends[kept:]
        if kept and self._ends[-1] > end:
            self._ends[-1] = end
        if self.position > end:
            self.position = end
            over = True
        return over

    def pack_ranges(self) -> bytes:
        """Return the ranges for `unpack_ranges`: all starts, all ends, as little-endian i64."""
        return struct.pack(f"<{2 * len(self._starts)}q", *self._starts, *self._ends)

    def unpack_ranges(self, packed: bytes) -> None:
        """Take over ranges that `pack_ranges` wrote for a cursor at the same position."""
        numbers = struct.unpack(f"<{len(packed) // 8}q", packed)
        half = len(numbers) // 2
        self._starts, self._ends = list(numbers[:half]), list(numbers[half:])
