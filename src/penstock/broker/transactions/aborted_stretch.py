"""A stretch of aborted transactions: as three columns, or packed into a few bytes for each.

Packed, numbers are what they are above the lowest or the one before, and each column has them in
1, 2, 4 or 8 bytes, so that all of a stretch are packed and unpacked in one step.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from itertools import accumulate, islice
from operator import sub
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STRETCH: Final = 1024
"""How many are packed together."""
_BLOCK: Final = 32
"""How many are passed over together by who looks for those that overlap a range."""
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
    """Transactions in the order of their ends, by columns."""

    __slots__ = ("_is_ordered", "_lowest", "first_offsets", "last_offsets", "producer_ids")

    def __init__(self, transactions: Iterable[tuple[int, int, int]] = ()) -> None:
        self.producer_ids = array("q")
        self.first_offsets = array("q")
        self.last_offsets = array("q")
        """Ascending."""
        self._lowest = array("q")
        """The lowest first offset of each block."""
        self._is_ordered = True
        """Whether they are known to have begun in this order too, so that no read has to look."""
        for each in transactions:
            self.add(*each)

    @classmethod
    def of_columns(
        cls, producer_ids: array[int], first_offsets: array[int], last_offsets: array[int]
    ) -> AbortedStretch:
        """Return the stretch that has these columns."""
        stretch = cls()
        stretch.producer_ids, stretch.last_offsets = producer_ids, last_offsets
        stretch.first_offsets = first_offsets
        stretch._is_ordered = _ascends(first_offsets)
        blocks = range(0, len(first_offsets), _BLOCK)
        stretch._lowest = array("q", [min(first_offsets[at : at + _BLOCK]) for at in blocks])
        return stretch

    def __len__(self) -> int:
        return len(self.last_offsets)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.producer_ids, self.first_offsets, self.last_offsets, strict=True)

    def add(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        """Remember one more."""
        block = len(self) // _BLOCK
        if block == len(self._lowest):
            self._lowest.append(first_offset)
        elif first_offset < self._lowest[block]:
            self._lowest[block] = first_offset
        self._note_order(first_offset)
        self.producer_ids.append(producer_id)
        self.first_offsets.append(first_offset)
        self.last_offsets.append(last_offset)

    def overlapping(self, start: int, end: int, found: AbortedStretch) -> None:
        """Add those with offsets from `start` up to `end` to others, whose blocks are not kept."""
        firsts, lasts = self.first_offsets, self.last_offsets
        begin = bisect_left(lasts, start)
        stop = bisect_left(lasts, end)
        found._extend(self, slice(begin, stop))
        for block in range(stop // _BLOCK, len(self._lowest)):
            if self._lowest[block] < end:
                for at in range(max(block * _BLOCK, stop), min((block + 1) * _BLOCK, len(lasts))):
                    if firsts[at] < end:
                        found._extend(self, slice(at, at + 1))

    def by_first_offset(self) -> AbortedStretch:
        """Return them in the order of their beginnings."""
        firsts = self.first_offsets
        if self._is_ordered or _ascends(firsts):
            return self
        order = sorted(range(len(firsts)), key=firsts.__getitem__)
        columns = (self.producer_ids, firsts, self.last_offsets)
        return AbortedStretch.of_columns(*(array("q", map(c.__getitem__, order)) for c in columns))

    def _extend(self, other: AbortedStretch, part: slice) -> None:
        firsts = other.first_offsets[part]
        if not firsts:
            return
        self._is_ordered = self._is_ordered and other._is_ordered
        self._note_order(firsts[0])
        self.producer_ids += other.producer_ids[part]
        self.first_offsets += firsts
        self.last_offsets += other.last_offsets[part]

    def _note_order(self, first_offset: int) -> None:
        if self.first_offsets and first_offset < self.first_offsets[-1]:
            self._is_ordered = False

    def packed(self) -> PackedStretch:
        """Return them packed; there are some."""
        lasts, lowest_id = self.last_offsets, min(self.producer_ids)
        columns = [
            _narrow([each - lowest_id for each in self.producer_ids]),
            _narrow([0, *map(sub, lasts[1:], lasts)]),
            _narrow([*map(sub, lasts, self.first_offsets)]),
        ]
        head = _HEAD.pack(
            *(len(self), min(self.first_offsets), lasts[0], lasts[-1], lowest_id),
            *(each.itemsize for each in columns),
        )
        return PackedStretch.parsed(memoryview(b"".join((head, *map(array.tobytes, columns)))))


class PackedStretch(NamedTuple):
    """What is to be known of a stretch that is packed."""

    content: bytes
    size: int
    """How many they are."""

    lowest: int
    """The lowest first offset."""
    last_offset: int

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
        lasts = array("q", islice(accumulate(steps, initial=first), 1, None))
        firsts = array("q", map(sub, lasts, lengths))
        return AbortedStretch.of_columns(
            array("q", [lowest_id + each for each in ids]), firsts, lasts
        )


def _ascends(offsets: array[int]) -> bool:
    return offsets.tolist() == sorted(offsets)


def _narrow(numbers: list[int]) -> array[int]:
    width = next(width for width in _CODES if max(numbers) < 1 << 8 * width)
    return array(_CODES[width], numbers)
