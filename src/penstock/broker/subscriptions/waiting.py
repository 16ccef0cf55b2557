"""What waits until the consumer that its key belongs to may get it, each key in its order.

It came back, or was passed over when others went on.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from penstock.broker.subscriptions.batch_run import BatchRuns
from penstock.broker.subscriptions.returned import RETURNED_BYTES, Returned
from penstock.broker.subscriptions.slots import NO_SLOT
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterable


class WaitingRanges(BatchRuns[Returned]):
    """Ranges that do not overlap, each of one slot of keys.

    `changed` has the slots of which another range may be next, or the next one may go to somebody
    else, since whoever hands out has looked at them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[int, list[int]] = {}
        self.changed: dict[int, None] = {}

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return len(self) * RETURNED_BYTES

    def first(self, slot: int) -> Returned | None:
        """Return what of a slot goes out next."""
        starts = self._starts.get(slot)
        return self.get(starts[0]) if starts else None

    def begins_with(self, offset: int, slot: int) -> bool:
        """Whether an offset lies in what of a slot goes out next."""
        first = self.first(slot)
        return first is not None and first.start <= offset < first.end

    def add(self, returned: Returned) -> None:
        assert returned.slot != NO_SLOT, "what has no key waits for nobody"
        super().add(returned)
        starts = self._starts.setdefault(returned.slot, [])
        heapq.heappush(starts, returned.start)
        if starts[0] == returned.start:
            self.changed[returned.slot] = None

    def pop_first(self, slot: int, end: int | None = None) -> Returned:
        """Take the first range of a slot out, or what of it lies before `end`; return it as it
        was.
        """
        starts = self._starts[slot]
        first = self.get(heapq.heappop(starts))
        assert first is not None, "something of the slot waits"
        self.remove(first)
        if not starts:
            del self._starts[slot]
        if end is not None and end < first.end:
            begins = first.begins_of(end, first.end)
            self.add(Returned(end, first.end, first.deliveries, begins, slot))
        return first

    def freed(self, slot: int) -> None:
        """Nothing of a slot is out any more."""
        if slot in self._starts:
            self.changed[slot] = None

    def moved(self, ranges: Iterable[tuple[int, int]]) -> None:
        """The slots of some ranges, ends excluded, are another consumer's."""
        for start, end in ranges:
            if end - start <= len(self._starts):
                slots: Iterable[int] = range(start, end)
                found = [slot for slot in slots if slot in self._starts]
            else:
                found = [slot for slot in self._starts if start <= slot < end]
            self.changed.update(dict.fromkeys(found))

    def clear(self) -> None:
        super().clear()
        drop(self._starts, self.changed)
        self._starts, self.changed = {}, {}
