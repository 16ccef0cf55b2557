"""Keys that consumers choose for themselves, by ranges of their hashes (Pulsar's STICKY)."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import KeyRangesError
from penstock.broker.subscriptions.selectors.key_owners import ConsumerT, KeyOwners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.subscriptions.selectors.key_owners import KeyConsumer

SLOTS: Final = 65_536


class KeyRanges(KeyOwners[ConsumerT]):
    """What lies in no range waits. A range may go beyond all slots (PIP-119)."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        self._at: dict[int, tuple[int, ConsumerT]] = {}
        """The end of the range that begins somewhere, and whose it is; no two overlap."""

    def _slot(self, hashed: int) -> int:
        return hashed % SLOTS or 1

    def owner(self, slot: int) -> ConsumerT | None:
        return self._from(slot, slot)

    def check(self, consumer: ConsumerT) -> None:
        if not consumer.key_ranges:
            raise KeyRangesError("Ranges for KeyShared policy must not be empty.")
        for start, end in consumer.key_ranges:
            if start > end:
                raise KeyRangesError(f"Fixed hash range start > end for range: [{start},{end}]")
            other = self._from(start, end)
            if other is not None:
                raise KeyRangesError(f"Range conflict with consumer {other.name}")
        for one, next_one in pairwise(sorted(consumer.key_ranges)):
            if next_one[0] <= one[1]:
                raise KeyRangesError(
                    f"Consumer's own ranges conflict: [{one[0]},{one[1]}] overlaps with "
                    f"[{next_one[0]},{next_one[1]}]"
                )

    def add(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        for start, end in consumer.key_ranges:
            insort(self._starts, start)
            self._at[start] = end, consumer
        return slots_of(consumer)

    def remove(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        self._at = {start: at for start, at in self._at.items() if at[1] is not consumer}
        self._starts = sorted(self._at)
        return slots_of(consumer)

    def _from(self, start: int, end: int) -> ConsumerT | None:
        """Return somebody who has a slot from one to another."""
        place = bisect_right(self._starts, end)
        if not place:
            return None
        last, consumer = self._at[self._starts[place - 1]]
        return consumer if last >= start else None


def slots_of(consumer: KeyConsumer) -> Sequence[tuple[int, int]]:
    """The slots in a consumer's ranges: of each the first, and the one behind its last."""
    inside = ((max(start, 1), min(end + 1, SLOTS)) for start, end in consumer.key_ranges)
    return [(first, behind) for first, behind in inside if first < behind]
