"""The aborted transactions of one partition, to be found by where their messages lie.

They stand in the order of their ends, in stretches. One that is full is packed into a few bytes for
each, as it is stored too, and unpacked for who reads there. Of each stretch the lowest first offset
is kept, and that of all from there on, so that those that overlap a range are found without a look
at those that don't: many may have ended while one that began long before was open.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections import OrderedDict
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from penstock.broker.transactions.aborted_range import AbortedRange
from penstock.broker.transactions.aborted_rows import joined
from penstock.broker.transactions.aborted_stretch import (
    STRETCH,
    AbortedStretch,
    AbortedTransaction,
    PackedStretch,
)
from penstock.limits import ABORTED_TRANSACTIONS_READ
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.session import Buffer

_UNPACKED: Final = 4
"""Stretches that are kept unpacked, for those who read on there."""
_STRETCHES_READ: Final = ABORTED_TRANSACTIONS_READ // STRETCH
"""In how many those that are read at once end."""
_STRETCH_BYTES: Final = STRETCH * 50
"""About what one takes of memory that is not packed."""
_PACKED_BYTES: Final = 300
"""About what one that is packed takes besides its bytes."""
_COUNT: Final = struct.Struct(">I")
NONE_ABORTED: Final = _COUNT.pack(0)
"""The snapshot of none."""
_made: Final = partial(tuple.__new__, AbortedTransaction)
"""What `AbortedTransaction._make` does, in a third of its time."""


class AbortedTransactions:
    """Those whose messages are still in the log."""

    def __init__(self) -> None:
        self._packed: list[PackedStretch] = []
        self._lasts = array("q")
        """The last offset of each of these."""
        self._lowest_from = array("q")
        """The lowest first offset of each of these and of those behind it."""
        self._newest = AbortedStretch()
        """Behind them, and not full."""
        self._unpacked: OrderedDict[int, AbortedStretch] = OrderedDict()
        """By their numbers; the one that was read last is at the end."""
        self.packed_bytes = 0

    def __len__(self) -> int:
        return len(self._packed) * STRETCH + len(self._newest)

    @property
    def used_bytes(self) -> int:
        """About what they take of memory."""
        stretches = min(len(self._packed), _UNPACKED) + bool(len(self._newest))
        return stretches * _STRETCH_BYTES + len(self._packed) * _PACKED_BYTES + self.packed_bytes

    def add(self, transaction: AbortedTransaction) -> None:
        """Remember one more, which ended behind all others."""
        assert transaction.last_offset > self._last_offset(), "they are added as they end"
        self._newest.add(*transaction)
        if len(self._newest) == STRETCH:
            self._put(PackedStretch.of(self._newest))
            self._newest = AbortedStretch()

    def overlapping(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return those with offsets from `start` up to `end`, by their first offsets."""
        found = [self._stretch(each).overlapping(start, end) for each in self._numbers(start, end)]
        found.append(self._newest.overlapping(start, end))
        return sorted(map(_made, chain.from_iterable(found)), key=itemgetter(1))

    def packed(self, start: int, end: int) -> AbortedRange:
        """Return the same as they are packed, and make nothing of each."""
        stretches = [self._packed[number] for number in self._numbers(start, end)]
        if self._newest:
            stretches.append(PackedStretch.of(self._newest))
        return AbortedRange(stretches, end)

    def named(self, start: int, end: int) -> Buffer:
        """Return the same in rows of aborted_rows.ROW, and make nothing of each.

        Each read of what is committed comes here, and finds code and data out of the caches: what
        it takes is by the steps there are, so there are few.
        """
        newest = self._newest
        lasts = self._lasts
        if not lasts or start > lasts[-1]:
            return newest.named(start, end)
        found = [self._stretch(each).named(start, end) for each in self._numbers(start, end)]
        if newest.reached and newest.first_offsets[0] < end:
            found.append(newest.named(start, end))
        return found[0] if len(found) == 1 else joined(found)

    def near_end(self, start: int, end: int) -> int:
        """Return `end`, or where so many have ended before it that a reader at `start` is to hear
        of no more at once: behind a stretch, for that takes no look into it.
        """
        lasts = self._lasts
        number = bisect_left(lasts, start) + _STRETCHES_READ - 1
        return min(end, lasts[number] + 1) if number < len(lasts) else end

    def trim(self, start_offset: int) -> None:
        """Forget those that lie below the start of the log, or most of them."""
        gone = bisect_left(self._lasts, start_offset)
        if not gone:
            return
        forgotten = self._packed[:gone]
        del self._packed[:gone], self._lasts[:gone], self._lowest_from[:gone]
        self._unpacked.clear()
        self.packed_bytes -= sum(len(each.content) for each in forgotten)
        drop(forgotten)

    def snapshot(self, following: Sequence[AbortedTransaction]) -> list[bytes]:
        """Return them, and others that are to be added, for `restore`, in pieces."""
        newest = [*sorted(self._newest, key=itemgetter(2)), *following]
        stretches = (newest[at : at + STRETCH] for at in range(0, len(newest), STRETCH))
        packed = [each.content for each in self._packed]
        packed += [PackedStretch.of(each).content for each in stretches]
        return [_COUNT.pack(len(packed)), *packed]

    def restore(self, snapshot: memoryview) -> Iterator[None]:
        """Take those of a snapshot, a stretch in each step; there was none before.

        Raises ValueError for what is no snapshot; some may have been taken by then.
        """
        count, at = _count_of(snapshot), _COUNT.size
        for number in range(1, count + 1):
            packed = PackedStretch.parsed(snapshot[at:])
            at += len(packed.content)
            if packed.last_offset <= self._last_offset():
                raise ValueError("the snapshot of aborted transactions has some out of order")
            if packed.size == STRETCH:
                self._put(packed)
            elif number == count:
                self._newest = packed.unpacked()
            else:
                raise ValueError("the snapshot of aborted transactions has one that is not full")
            yield
        if at != len(snapshot):
            raise ValueError("the snapshot of aborted transactions has another size than it says")

    def restore_from_columns(self, snapshot: memoryview) -> Iterator[None]:
        """Do as `restore` with a snapshot of the first version: three columns of eight bytes."""
        count, at = _count_of(snapshot), _COUNT.size
        if len(snapshot) != at + count * 3 * 8:
            raise ValueError("the snapshot of aborted transactions has another size than it says")
        numbers = snapshot[at:].cast("q")
        columns = [numbers[begin : begin + count] for begin in (0, count, 2 * count)]
        for begin in range(0, count, STRETCH):
            rows = zip(*(each[begin : begin + STRETCH] for each in columns), strict=True)
            packed = PackedStretch.of(rows)
            if packed.size == STRETCH:
                self._put(packed)
            else:
                self._newest = packed.unpacked()
            yield

    def _put(self, packed: PackedStretch) -> None:
        self._packed.append(packed)
        self._lasts.append(packed.last_offset)
        at = bisect_left(self._lowest_from, packed.lowest)
        self._lowest_from[at:] = array("q", [packed.lowest]) * (len(self._packed) - at)
        self.packed_bytes += len(packed.content)

    def _last_offset(self) -> int:
        if self._newest:
            return self._newest.reached[-1]
        return self._lasts[-1] if self._lasts else -1

    def _numbers(self, start: int, end: int) -> list[int]:
        """Return which of those that are packed may have some that overlap a range, ascending."""
        packed = self._packed
        begin = bisect_left(self._lasts, start)
        behind = bisect_left(self._lowest_from, end, begin)
        return [each for each in range(begin, behind) if packed[each].lowest < end]

    def _stretch(self, number: int) -> AbortedStretch:
        """Return one that is packed."""
        found = self._unpacked.get(number)
        if found is None:
            found = self._unpacked[number] = self._packed[number].unpacked()
            if len(self._unpacked) > _UNPACKED:
                self._unpacked.popitem(last=False)
        else:
            self._unpacked.move_to_end(number)
        return found


def _count_of(snapshot: memoryview) -> int:
    if len(snapshot) < _COUNT.size:
        raise ValueError("the snapshot of aborted transactions is cut off")
    (count,) = _COUNT.unpack_from(snapshot)
    return int(count)
