"""Which batches of transactions compaction leaves out: what was aborted, then the markers."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.header import BatchHeader


class Transactions:
    """The transactions of a log that have ended, as one pass over it from its start meets them.

    Of each that was aborted there are its producer's id, its first offset and that of its marker.
    """

    def __init__(self, aborted: Iterable[tuple[int, int, int]] = ()) -> None:
        self._aborted: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for producer_id, first_offset, marker_offset in sorted(aborted):
            self._aborted[producer_id].append((first_offset, marker_offset))
        self._met: set[int] = set()
        """Producers of which there was data since their last marker."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of a transaction is of one that was aborted."""
        ranges = self._aborted.get(header.producer_id)
        if not ranges:
            return False
        number = bisect_right(ranges, header.base_offset, key=lambda each: each[0]) - 1
        return number >= 0 and header.base_offset < ranges[number][1]

    def meet(self, header: BatchHeader) -> None:
        """The pass has come to a batch of a transaction."""
        self._met.add(header.producer_id)

    def ends_nothing(self, header: BatchHeader) -> bool:
        """Whether the marker that the pass has come to has no data before it any more."""
        if header.producer_id not in self._met:
            return True
        self._met.discard(header.producer_id)
        return False
