"""Which batches of transactions compaction leaves out: what was aborted, then the markers."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from operator import itemgetter
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
        return header.base_offset < self._abort_of(header)

    def meet(self, header: BatchHeader) -> None:
        """The pass has come to a batch of a transaction."""
        self._met.add(header.producer_id)

    def ends_nothing(self, header: BatchHeader) -> bool:
        """Whether the marker that the pass has come to has no data before it any more, and is of no
        transaction that is known to have aborted: readers of Kafka are told of that, and take what
        its producer wrote later for a part of it until they come to the marker.
        """
        has_data = header.producer_id in self._met
        self._met.discard(header.producer_id)
        return not has_data and self._abort_of(header) != header.base_offset

    def _abort_of(self, header: BatchHeader) -> int:
        """Return the marker of the last transaction of a batch's producer that began by then, and
        was aborted; -1 where there is none.
        """
        ranges = self._aborted.get(header.producer_id)
        if not ranges:
            return -1
        number = bisect_right(ranges, header.base_offset, key=itemgetter(0)) - 1
        return ranges[number][1] if number >= 0 else -1
