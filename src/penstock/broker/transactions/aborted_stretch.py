"""A stretch of aborted transactions: as readers are told of them, or packed into a few bytes each.

Packed, numbers are what they are above the lowest or the one before, and each column has them in
1, 2, 4 or 8 bytes, so that all of a stretch are packed and unpacked in one step.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, islice
from operator import itemgetter, sub
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.transactions.aborted_rows import ROW, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.records.columns import Numbers

STRETCH: Final = 1024
"""How many are packed together."""
_HEAD: Final = struct.Struct("<HqqqqBBB")
"""Count; lowest first offset, first and last of the last offsets, lowest producer id; bytes of a
number in each of the columns that follow: producer ids above the lowest, last offsets above the one
before, lengths."""
_CODES: Final = {array(code).itemsize: code for code in "BHIQ"}


class AbortedTransaction(NamedTuple):
    """From its first message in the partition to the marker at its end, offsets included."""

    producer_id: int
    first_offset: int
    last_offset: int


class AbortedStretch:
    """Transactions by their first offsets: in columns, and as readers are told of them."""

    __slots__ = ("_rows", "first_offsets", "last_offsets", "producer_ids", "reached")

    def __init__(self) -> None:
        self.producer_ids = array("q")
        self.first_offsets = array("q")
        self.last_offsets = array("q")
        self.reached = array("q")
        """The highest last offset of each and of those before it."""
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self.reached)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.producer_ids, self.first_offsets, self.last_offsets, strict=True)

    def add(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        """Remember one more, which ended behind all others."""
        at = bisect_right(self.first_offsets, first_offset)
        self.producer_ids.insert(at, producer_id)
        self.first_offsets.insert(at, first_offset)
        self.last_offsets.insert(at, last_offset)
        self._rows[at * ROW.size : at * ROW.size] = ROW.pack(producer_id, first_offset)
        self.reached[at:] = array("q", [last_offset]) * (len(self.first_offsets) - at)

    def named(self, start: int, end: int) -> bytearray:
        """Return the rows of those that have offsets from `start` up to `end`."""
        firsts = self.first_offsets
        begin = bisect_left(self.reached, start)
        stop = bisect_left(firsts, end, begin)
        rows, size = self._rows, ROW.size
        if begin < stop and firsts[begin] < start:
            # Most often this one is alone, or others that began before it have not ended either.
            after = bisect_left(firsts, start, begin, stop)
            lasts = self.last_offsets[begin:after]
            if min(lasts) < start:
                before = [at for at, last in enumerate(lasts, begin) if last >= start]
                of_each = [rows[at * size : (at + 1) * size] for at in before]
                return bytearray().join((*of_each, rows[after * size : stop * size]))
        return rows[begin * size : stop * size]

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Return those that have."""
        begin = bisect_left(self.reached, start)
        stop = bisect_left(self.first_offsets, end, begin)
        columns = self.producer_ids, self.first_offsets, self.last_offsets
        found = zip(*(column[begin:stop] for column in columns), strict=True)
        return [each for each in found if each[2] >= start]


class PackedStretch(NamedTuple):
    """What is to be known of a stretch that is packed, in the order of their ends."""

    content: bytes
    size: int
    """How many they are."""

    lowest: int
    """The lowest first offset."""
    last_offset: int

    @classmethod
    def of(cls, transactions: Iterable[tuple[int, int, int]]) -> PackedStretch:
        """Return some packed, of each the producer's id, its first and its last offset."""
        ended = sorted(transactions, key=itemgetter(2))
        producer_ids, firsts, lasts = zip(*ended, strict=True)
        lowest_id = min(producer_ids)
        columns = [
            _narrow([each - lowest_id for each in producer_ids]),
            _narrow([0, *map(sub, lasts[1:], lasts)]),
            _narrow([*map(sub, lasts, firsts)]),
        ]
        head = _HEAD.pack(
            *(len(ended), min(firsts), lasts[0], lasts[-1], lowest_id),
            *(each.itemsize for each in columns),
        )
        return cls.parsed(memoryview(b"".join((head, *map(array.tobytes, columns)))))

    @classmethod
    def parsed(cls, content: memoryview) -> PackedStretch:
        """Return the one at the beginning of something. Raises ValueError where there is none."""
        if len(content) < _HEAD.size:
            raise ValueError("the snapshot of aborted transactions is cut off")
        count, lowest, _, last_offset, _, *widths = _HEAD.unpack_from(content)
        end = _HEAD.size + count * sum(widths)
        if not (1 <= count <= STRETCH and len(content) >= end and _CODES.keys() >= {*widths}):
            raise ValueError("the snapshot of aborted transactions is none")
        return cls(bytes(content[:end]), count, lowest, last_offset)

    def rows(self) -> Numbers:
        """Return producer ids, first offsets and last offsets, in the order of their ends."""
        import numpy as np  # noqa: PLC0415 (the broker starts without it)

        _, _, first, _, lowest_id, *widths = _HEAD.unpack_from(self.content)
        rows, at = np.empty((3, self.size), np.int64), _HEAD.size
        for row, width in zip(rows, widths, strict=True):
            row[:] = np.frombuffer(self.content, f"=u{width}", self.size, at)
            at += self.size * width
        producer_ids, last_offsets, lengths = rows
        producer_ids += lowest_id
        last_offsets[0] = first
        np.cumsum(last_offsets, out=last_offsets)
        return np.stack((producer_ids, last_offsets - lengths, last_offsets))

    def unpacked(self) -> AbortedStretch:
        """Return the stretch."""
        _, _, first, _, lowest_id, *widths = _HEAD.unpack_from(self.content)
        columns, at = [], _HEAD.size
        for width in widths:
            column = array(_CODES[width])
            column.frombytes(self.content[at : at + self.size * width])
            columns.append(column)
            at += self.size * width
        ids, steps, lengths = columns
        ends = [*islice(accumulate(steps, initial=first), 1, None)]
        stretch = AbortedStretch()
        begun = [*map(sub, ends, lengths)], [lowest_id + each for each in ids], ends
        stretch.first_offsets, stretch.producer_ids, stretch.last_offsets = _by_first(*begun)
        stretch._rows = rows_of(stretch.producer_ids, stretch.first_offsets)
        stretch.reached = array("q", accumulate(stretch.last_offsets, max))
        return stretch


def _by_first(*columns: list[int]) -> list[array[int]]:
    firsts = columns[0]
    if firsts == sorted(firsts):
        return [array("q", column) for column in columns]
    order = sorted(range(len(firsts)), key=firsts.__getitem__)
    return [array("q", map(column.__getitem__, order)) for column in columns]


def _narrow(numbers: list[int]) -> array[int]:
    width = next(width for width in _CODES if max(numbers) < 1 << 8 * width)
    return array(_CODES[width], numbers)
