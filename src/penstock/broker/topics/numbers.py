"""Numbers that are given to things in order and given back: Iggy's ids of streams and topics."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class LowestFree:
    """Hands out the lowest number from 0 that nobody has, whatever the order of those given back.

    A number costs O(log n), however many there are.
    """

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._end = 0
        """No number from here on is taken."""
        self._free: list[int] = []
        for number in sorted(taken):
            self._open_up(number)

    def take(self) -> int:
        """Return the lowest free number, which is taken now."""
        if self._free:
            return heapq.heappop(self._free)
        self._end += 1
        return self._end - 1

    def give_back(self, number: int) -> None:
        """Let a number that was taken be given again."""
        assert 0 <= number < self._end, "only what was taken is given back"
        heapq.heappush(self._free, number)

    def _open_up(self, number: int) -> None:
        for free in range(self._end, number):
            heapq.heappush(self._free, free)
        self._end = number + 1
