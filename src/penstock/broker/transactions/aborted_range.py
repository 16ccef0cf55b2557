"""The aborted transactions of a range as they are packed, to be looked through elsewhere.

There may be many millions: whoever goes over the range unpacks those of some of it at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.transactions.aborted_stretch import PackedStretch
    from penstock.records.columns import Numbers

_WINDOW: Final = 512
"""Stretches that end in what is unpacked at once: 12 MB, and twice that while it is ordered."""


class AbortedRange(NamedTuple):
    """Those that have offsets below `end`, and others that are packed with them."""

    stretches: Sequence[PackedStretch]
    """In the order of their ends."""
    end: int

    def window(self, start: int) -> tuple[Numbers, int]:
        """Return those that have offsets from `start` up to an end, and that end: in rows, of each
        its producer's id, its first and its last offset.
        """
        import numpy as np  # noqa: PLC0415 (the broker starts without it)

        begin = bisect_left(self.stretches, start, key=attrgetter("last_offset"))
        end = self.end
        if begin + _WINDOW < len(self.stretches):
            end = min(end, self.stretches[begin + _WINDOW - 1].last_offset + 1)
        found = [np.empty((3, 0), np.int64)]
        for stretch in self.stretches[begin:]:
            if stretch.lowest < end:
                rows = stretch.rows()
                found.append(rows[:, (rows[1] < end) & (rows[2] >= start)])
        return np.concatenate(found, axis=1), end
