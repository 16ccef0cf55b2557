"""What came back from its holders and is to be delivered again, lowest offset first."""

from __future__ import annotations

import heapq
from typing import Final

from penstock.broker.subscriptions.batch_run import BatchRun, BatchRuns
from penstock.broker.subscriptions.slots import NO_SLOT
from penstock.pace import drop

RETURNED_BYTES: Final = 400
"""About what a range takes of memory."""


class Returned(BatchRun):
    """Batches that count as delivered `deliveries` times; their keys are of `slot`, if of any."""

    __slots__ = ("deliveries", "slot")

    def __init__(
        self, start: int, end: int, deliveries: int, begins: int = 1, slot: int = NO_SLOT
    ) -> None:
        super().__init__(start, end, begins)
        self.deliveries = deliveries
        self.slot = slot


class ReturnedRanges(BatchRuns[Returned]):
    """Ranges that do not overlap."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        self._newest: Returned | None = None

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return len(self) * RETURNED_BYTES

    @property
    def first(self) -> Returned | None:
        return self.get(self._starts[0]) if self._starts else None

    def add(self, returned: Returned) -> None:
        newest = self._newest
        if (
            newest is not None
            and newest.deliveries == returned.deliveries
            and newest.extend(returned.start, returned.end, returned.begins)
        ):
            return
        super().add(returned)
        heapq.heappush(self._starts, returned.start)
        self._newest = returned

    def pop_first(self, end: int | None = None) -> Returned:
        """Take the first range out, or what of it lies before `end`, and return it as it was."""
        first = self.get(heapq.heappop(self._starts))
        assert first is not None, "something came back"
        self.remove(first)
        if first is self._newest:
            self._newest = None
        if end is not None and end < first.end:
            begins = first.begins_of(end, first.end)
            self.add(Returned(end, first.end, first.deliveries, begins))
        return first

    def clear(self) -> None:
        super().clear()
        drop(self._starts)
        self._starts = []
        self._newest = None
