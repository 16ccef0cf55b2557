"""A set of whole numbers that mostly stand side by side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Runs:
    """Kept as runs, ends excluded, so that it takes as much as there are gaps between them.

    Runs never touch. To find one costs O(log n) of them; to drop many costs their number.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def __contains__(self, number: int) -> bool:
        return self.end_of(number) > number

    @property
    def last_end(self) -> int:
        """The first number above all of them, or 0 where there is none."""
        return self._ends[-1] if self._ends else 0

    def end_of(self, number: int) -> int:
        """Return the first number from this one on that is not in the set."""
        at = bisect_right(self._starts, number) - 1
        return max(self._ends[at], number) if at >= 0 else number

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return what lies from `start` up to `end`."""
        first, last = self._touched(start, end)
        ends = self._ends[first:last]
        return [
            (max(low, start), min(high, end))
            for low, high in zip(self._starts[first:last], ends, strict=True)
        ]

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        at = bisect_right(self._starts, number)
        joins_before = at > 0 and self._ends[at - 1] == number
        joins_after = at < len(self._starts) and self._starts[at] == number + 1
        assert at == 0 or self._ends[at - 1] <= number, "a number is added once"
        if joins_before and joins_after:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_before:
            self._ends[at - 1] = number + 1
        elif joins_after:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)

    def remove(self, start: int, end: int) -> int:
        """Take out what lies from `start` up to `end`; return how much that was."""
        removed = sum(high - low for low, high in self.between(start, end))
        first, last = self._touched(start, end)
        pieces = []
        if first < last:
            # What is left of the first run and of the last one.
            pieces = [(self._starts[first], start), (end, self._ends[last - 1])]
            pieces = [(low, high) for low, high in pieces if low < high]
        self._starts[first:last] = [low for low, _ in pieces]
        self._ends[first:last] = [high for _, high in pieces]
        return removed

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()

    def _touched(self, start: int, end: int) -> tuple[int, int]:
        """Return which runs have a number between two."""
        first = bisect_right(self._ends, start)
        return first, max(first, bisect_left(self._starts, end))
