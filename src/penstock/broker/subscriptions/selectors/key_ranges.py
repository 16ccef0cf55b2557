"""Keys that consumers choose for themselves, by ranges of their hashes (Pulsar's STICKY)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import KeyRangesError
from penstock.broker.subscriptions.selectors.key_owners import ConsumerT, KeyOwners

if TYPE_CHECKING:
    from collections.abc import Sequence

SLOTS: Final = 65_536


class KeyRanges(KeyOwners[ConsumerT]):
    """As Pulsar's HashRangeExclusiveStickyKeyConsumerSelector: a slot belongs to a consumer where
    the next bounds of ranges on both sides are its own. So what lies between two ranges of one
    consumer is its own too while nobody else has it, and elsewhere what lies in no range waits. A
    range may go beyond all slots.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bounds: list[int] = []
        self._at: dict[int, ConsumerT] = {}

    def _slot(self, hashed: int) -> int:
        return hashed % SLOTS or 1

    def owner(self, slot: int) -> ConsumerT | None:
        bounds = self._bounds
        place = bisect_left(bounds, slot)
        if place == len(bounds):
            return None
        after = self._at[bounds[place]]
        if bounds[place] == slot:
            return after
        return after if place and self._at[bounds[place - 1]] is after else None

    def check(self, consumer: ConsumerT) -> None:
        if not consumer.key_ranges:
            raise KeyRangesError("Ranges for KeyShared policy must not be empty.")
        for start, end in consumer.key_ranges:
            if start > end:
                raise KeyRangesError("Fixed hash range start > end")
            other = self._between(start, end)
            if other is not None:
                raise KeyRangesError(f"Range conflict with consumer {other.name}")

    def add(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        bounds = set[int]()
        for start, end in consumer.key_ranges:
            if end >= 0 and start < SLOTS:
                bounds |= {max(start, 0), min(end, SLOTS - 1)}
        for bound in bounds:
            self._at[bound] = consumer
            insort(self._bounds, bound)
        return [(max(min(bounds), 1), max(bounds) + 1)] if bounds else []

    def remove(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        # What lay between two ranges of others, with one of this consumer's, is theirs again.
        self._bounds = [bound for bound in self._bounds if self._at[bound] is not consumer]
        self._at = {bound: self._at[bound] for bound in self._bounds}
        return [(1, SLOTS)]

    def _between(self, start: int, end: int) -> ConsumerT | None:
        """Return somebody who has a slot from one to another."""
        place = bisect_left(self._bounds, start)
        if place < bisect_right(self._bounds, end):
            return self._at[self._bounds[place]]
        if not 0 < place < len(self._bounds):
            return None
        other = self._at[self._bounds[place]]
        has_it = any(low <= end and start <= high for low, high in other.key_ranges)
        return other if has_it else None
