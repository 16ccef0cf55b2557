"""Which batches of transactions compaction leaves out: what was aborted, then the markers."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.log.header import BatchHeader
    from penstock.records.columns import Numbers

    Window: TypeAlias = Callable[[int], tuple[Numbers, int]]
    """Returns those that have offsets from a start up to some end, in rows, and that end: of each
    that was aborted its producer's id, its first offset and that of its marker.
    """


def none_aborted(_start: int) -> tuple[Numbers, int]:
    """Tell of a log in which nothing was aborted."""
    return np.empty((3, 0), np.int64), sys.maxsize


class Transactions:
    """The transactions of a log that have ended, as one pass over it from its start meets them.

    Those that were aborted are asked for as the pass comes to them: there may be many millions.
    """

    def __init__(self, aborted: Window = none_aborted) -> None:
        self._aborted = aborted
        self._known = range(0)
        """Of which offsets they are known."""
        self._producer_ids = self._first_offsets = self._markers = memoryview(b"").cast("q")
        """Ascending, and of each producer by first offsets, which the others go with."""
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
        was aborted, of those with offsets from there on; -1 where there is none.
        """
        if header.base_offset not in self._known:
            self._know(header.base_offset)
        begin = bisect_left(self._producer_ids, header.producer_id)
        end = bisect_right(self._producer_ids, header.producer_id, begin)
        number = bisect_right(self._first_offsets, header.base_offset, begin, end) - 1
        return self._markers[number] if number >= begin else -1

    def _know(self, offset: int) -> None:
        rows, end = self._aborted(offset)
        order = np.lexsort((rows[1], rows[0]))
        self._producer_ids, self._first_offsets, self._markers = (row[order].data for row in rows)
        self._known = range(offset, end)
