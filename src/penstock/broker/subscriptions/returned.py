"""What came back from its holders and is to be delivered again, lowest offset first."""

from __future__ import annotations

import heapq
from typing import NamedTuple


class Returned(NamedTuple):
    """The offsets from `start` up to `end`, which count as delivered `deliveries` times."""

    start: int
    end: int
    deliveries: int


class ReturnedRanges:
    """Ranges that do not overlap."""

    def __init__(self) -> None:
        self._by_start: dict[int, Returned] = {}
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._by_start)

    def get(self, start: int) -> Returned | None:
        """Return the range that begins at an offset."""
        return self._by_start.get(start)

    @property
    def first(self) -> Returned | None:
        return self._by_start[self._starts[0]] if self._starts else None

    def add(self, returned: Returned) -> None:
        assert returned.start not in self._by_start, "what came back is not out"
        self._by_start[returned.start] = returned
        heapq.heappush(self._starts, returned.start)

    def pop_first(self) -> Returned:
        return self._by_start.pop(heapq.heappop(self._starts))

    def clear(self) -> None:
        self._by_start.clear()
        self._starts.clear()
