"""The aborted transactions of one partition, to be found by where their messages lie.

They stand in the order of their ends. Of each stretch of them the lowest first offset is kept, and
of each stretch of stretches, so that those that overlap a range are found without a look at those
that don't: many may have ended while one that began long before was open.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import ABORTED_TRANSACTIONS_READ

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STRETCH: Final = 64
_FAR: Final = _STRETCH * _STRETCH
"""Transactions that a stretch of stretches has."""
_COUNT: Final = struct.Struct(">I")
_NUMBERS: Final = 3
"""That a transaction is, of eight bytes each."""
TRANSACTION_BYTES: Final = 25
"""About what one takes of memory."""


class AbortedTransaction(NamedTuple):
    """From its first message in the partition to the marker at its end, offsets included."""

    producer_id: int
    first_offset: int
    last_offset: int


class AbortedTransactions:
    """Those whose messages are still in the log."""

    def __init__(self) -> None:
        self._producer_ids = array("q")
        self._lasts = array("q")
        """Ascending."""
        self._firsts = array("q")
        self._lowest = array("q")
        """The lowest of each stretch of `_firsts`."""
        self._lowest_of_all = array("q")
        """The lowest of each stretch of `_lowest`."""

    def __len__(self) -> int:
        return len(self._lasts)

    def add(self, transaction: AbortedTransaction) -> None:
        """Remember one more, which ended behind all others."""
        producer_id, first, last = transaction
        assert not self._lasts or last > self._lasts[-1], "they are added as they end"
        number = len(self._lasts)
        self._producer_ids.append(producer_id)
        self._firsts.append(first)
        self._lasts.append(last)
        _note(self._lowest, number // _STRETCH, first)
        _note(self._lowest_of_all, number // _FAR, first)

    def overlapping(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return those with offsets from `start` up to `end`, by their first offsets."""
        return sorted(
            (
                AbortedTransaction(
                    self._producer_ids[number], self._firsts[number], self._lasts[number]
                )
                for number in self._numbers(start, end)
            ),
            key=attrgetter("first_offset"),
        )

    def near_end(self, start: int, end: int) -> int:
        """Return `end`, or where so many have ended before it that a reader at `start` is to hear
        of no more at once.
        """
        number = bisect_left(self._lasts, start) + int(ABORTED_TRANSACTIONS_READ)
        return min(end, self._lasts[number] + 1) if number < len(self._lasts) else end

    def trim(self, start_offset: int) -> None:
        """Forget those that lie below the start of the log, or most of them."""
        gone = bisect_left(self._lasts, start_offset) // _FAR
        if gone:
            del self._producer_ids[: gone * _FAR]
            del self._firsts[: gone * _FAR]
            del self._lasts[: gone * _FAR]
            del self._lowest[: gone * _STRETCH]
            del self._lowest_of_all[:gone]

    def snapshot(self, following: Sequence[AbortedTransaction]) -> bytes:
        """Return them, and others that are to be added, for `restored`."""
        parts = [_COUNT.pack(len(self) + len(following))]
        for number, column in enumerate((self._producer_ids, self._firsts, self._lasts)):
            parts += [column.tobytes(), array("q", [each[number] for each in following]).tobytes()]
        return b"".join(parts)

    @classmethod
    def restored(cls, snapshot: memoryview) -> AbortedTransactions:
        """Return those of a snapshot. Raises ValueError for what is none."""
        if len(snapshot) < _COUNT.size:
            raise ValueError("the snapshot of aborted transactions is cut off")
        (count,) = _COUNT.unpack_from(snapshot)
        if len(snapshot) != _COUNT.size + count * _NUMBERS * 8:
            raise ValueError("the snapshot of aborted transactions has another size than it says")
        restored = cls()
        columns = (restored._producer_ids, restored._firsts, restored._lasts)
        for number, column in enumerate(columns):
            start = _COUNT.size + number * count * 8
            column.frombytes(snapshot[start : start + count * 8])
        firsts = restored._firsts
        restored._lowest.extend(min(firsts[at : at + _STRETCH]) for at in range(0, count, _STRETCH))
        lowest = restored._lowest
        restored._lowest_of_all.extend(
            min(lowest[at : at + _STRETCH]) for at in range(0, len(lowest), _STRETCH)
        )
        return restored

    def _numbers(self, start: int, end: int) -> Iterator[int]:
        """Yield which of them overlap a range, the one that ended first before the others."""
        begin = bisect_left(self._lasts, start)
        for far in range(begin // _FAR, len(self._lowest_of_all)):
            if self._lowest_of_all[far] < end:
                yield from self._numbers_in(far, begin, end)

    def _numbers_in(self, far: int, begin: int, end: int) -> Iterator[int]:
        firsts = self._firsts
        stretches = range(
            max(far * _STRETCH, begin // _STRETCH), min((far + 1) * _STRETCH, len(self._lowest))
        )
        for stretch in stretches:
            if self._lowest[stretch] >= end:
                continue
            last = min((stretch + 1) * _STRETCH, len(firsts))
            for number in range(max(stretch * _STRETCH, begin), last):
                if firsts[number] < end:
                    yield number


def _note(lowest: array[int], stretch: int, first: int) -> None:
    if stretch == len(lowest):
        lowest.append(first)
    elif first < lowest[stretch]:
        lowest[stretch] = first
