"""What those see who read what is committed and can't leave the rest out themselves."""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
from typing import TYPE_CHECKING

from penstock.log.header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.header import BatchHeader
    from penstock.records.columns import Numbers


class Committed:
    """Tells batches of aborted transactions, and control batches, from the others of one read.

    `aborted` are those of the range that is read, by their first offsets: the id of the producer
    of each, its first offset and that of its marker.
    """

    def __init__(self, aborted: Iterable[tuple[int, int, int]] = ()) -> None:
        self.aborted = tuple(aborted)
        self._of_producer: dict[int, tuple[list[int], list[int]]] | None = None

    def hides(self, header: BatchHeader) -> bool:
        """Whether nobody who reads what is committed sees this batch."""
        attributes = header.attributes
        if not attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL):
            return False
        if attributes & ATTRIBUTE_CONTROL:
            return True
        aborted = self._by_producer().get(header.producer_id)
        if aborted is None:
            return False
        first_offsets, markers = aborted
        # Those of one producer follow one another.
        number = bisect_right(first_offsets, header.base_offset)
        return number > 0 and header.base_offset < markers[number - 1]

    def table(self) -> Numbers:
        """Return them as `penstock.records.seeing` looks them up."""
        import numpy as np  # noqa: PLC0415

        numbers = chain.from_iterable(self.aborted)
        rows = np.fromiter(numbers, np.int64, 3 * len(self.aborted)).reshape(-1, 3)
        # They are ordered by their first offsets already.
        return np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")].T)

    def _by_producer(self) -> dict[int, tuple[list[int], list[int]]]:
        """Return first offsets and markers, which are looked up by nobody where all is done in one
        step.
        """
        if self._of_producer is None:
            self._of_producer = {}
            for producer_id, first_offset, marker_offset in self.aborted:
                first_offsets, markers = self._of_producer.setdefault(producer_id, ([], []))
                first_offsets.append(first_offset)
                markers.append(marker_offset)
        return self._of_producer
