"""Numbers that are given to things and given back: Iggy's ids of streams and topics."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class LowestFree:
    """Hands out the lowest number from 0 that nobody has, or one that a client chose.

    A number costs O(log n) of those that were given, however large it is.
    """

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._ahead = set(taken)
        """What is taken from `_end` on."""
        self._end = 0
        """All below is taken, or free."""
        self._free: set[int] = set()
        self._heap: list[int] = []
        """What is free, and perhaps what was."""

    def take(self) -> int:
        """Return the lowest free number, which is taken now."""
        while self._heap:
            number = heapq.heappop(self._heap)
            if number in self._free:
                self._free.remove(number)
                return number
        while self._end in self._ahead:
            self._ahead.remove(self._end)
            self._end += 1
        self._end += 1
        return self._end - 1

    def claim(self, number: int) -> bool:
        """Take this number; return whether it was free."""
        if number < self._end:
            if number not in self._free:
                return False
            self._free.remove(number)
            return True
        if number in self._ahead:
            return False
        self._ahead.add(number)
        return True

    def give_back(self, number: int) -> None:
        """Let a number that was taken be given again."""
        if number in self._ahead:
            self._ahead.remove(number)
            return
        assert 0 <= number < self._end, "only what was taken is given back"
        self._free.add(number)
        heapq.heappush(self._heap, number)
        if len(self._heap) > 2 * len(self._free) + 16:
            self._heap = sorted(self._free)
