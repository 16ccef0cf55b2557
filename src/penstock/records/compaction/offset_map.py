"""The highest offset of each key, in a table of fixed size: keys are known by a hash of 122 bits.

It is what Kafka's cleaner calls its dedupe buffer. Where two keys had one hash, the older one would
lose its last record, so the hash is one that nobody outside can aim at: each map draws its secrets.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.limits import COMPACTION_SPAN_BYTES
from penstock.records import field
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    MaskOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.keyed_hash import PRIME, keyed_hash
from penstock.records.kernels.primitives import prefetch

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Mask, Numbers

_LOW: Final = 0
_HIGH: Final = 1
_BEHIND: Final = 2
"""The offset behind the record; 0 in a slot that is free."""
_SLOT_FIELDS: Final = 3
SLOT_BYTES: Final = 8 * _SLOT_FIELDS
_LOAD: Final = 0.75
"""The part of the slots that is used at most: beyond it look-ups get slow."""
_AHEAD: Final = 8
"""Records by which their slots are asked for ahead of their turn."""


class OffsetMap:
    """Takes keys until it is full, in the order of the log, and says which records have a later one
    of their key among those taken.

    Of the records that it took itself, a bit for each offset says that: only those before them are
    looked up. It is told up to how many offsets it will take, as far as that is known: for a small
    log to have all bits at hand takes longer than to compact it.
    """

    def __init__(self, size_bytes: int, span: int = 8 * int(COMPACTION_SPAN_BYTES)) -> None:
        slots = 1 << max(4, (size_bytes // SLOT_BYTES).bit_length() - 1)
        self._table = np.zeros((slots, _SLOT_FIELDS), np.int64)
        self._most = int(slots * _LOAD)
        self._used = np.zeros(1, np.int64)
        self._secrets = secrets.randbelow(PRIME), secrets.randbelow(PRIME)
        bits = min(span, 8 * int(COMPACTION_SPAN_BYTES))
        self._replaced = np.zeros(-(-bits // 8), np.uint8)
        self.start: int | None = None
        """The offset of the first record that was put."""

    def __len__(self) -> int:
        return int(self._used[0])

    def clear(self) -> None:
        """Forget all keys."""
        self._table.fill(0)
        self._used.fill(0)
        self._replaced.fill(0)
        self.start = None

    def put(self, columns: Columns, chosen: Mask) -> int:
        """Take the keys of the chosen records; returns the index of the first that finds no room,
        or the number of records.
        """
        if not len(columns):
            return 0
        if self.start is None:
            self.start = int(columns.offsets[0])
        hashes = self._hashes(columns, len(columns))
        room = self._table, self._most, self._used, self._replaced
        return put_keys(hashes, columns.offsets, chosen, self.start, *room)

    def replaced(self, columns: Columns, chosen: Mask) -> Mask:
        """Return which of the chosen records have a later one of their key."""
        found = np.zeros(len(columns), np.bool_)
        if self.start is None:
            return found
        older = int(np.searchsorted(columns.offsets, self.start))
        if older:
            hashes = self._hashes(columns, older)
            find_replaced(hashes, columns.offsets, chosen, self._table, found)
        copy_replaced(columns.offsets, older, self.start, self._replaced, found)
        return found

    def _hashes(self, columns: Columns, count: int) -> Numbers:
        """Return the hash of each of the first keys, in two rows."""
        hashes = np.empty((2, count), np.int64)
        hash_keys(columns.data, columns.records, *self._secrets, hashes)
        return hashes


@kernel
def hash_keys(data: BytesIn, records: TableIn, first: int, second: int, hashes: TableOut) -> None:
    """Fill in the hash of each key that there is."""
    for row in range(hashes.shape[1]):
        size = records[field.KEY_SIZE, row]
        if size >= 0:
            start = records[field.KEY_START, row]
            low, high = keyed_hash(data, start, size, uint64(first), uint64(second))
            hashes[_LOW, row] = int64(low)
            hashes[_HIGH, row] = int64(high)
        else:
            hashes[_LOW, row] = hashes[_HIGH, row] = 0


@helper
def _ask_ahead(hashes: TableIn, row: int, table: TableIn) -> None:
    """Have the slot at hand that a record behind this one needs."""
    if row + _AHEAD < hashes.shape[1]:
        slot = hashes[_LOW, row + _AHEAD] & (len(table) - 1)
        prefetch(table, slot * _SLOT_FIELDS)
        prefetch(table, slot * _SLOT_FIELDS + _BEHIND)  # Of a quarter it lies in another line.


@helper
def _slot_of(table: TableIn, low: int, high: int) -> int:
    """Return the slot that has a key, or is free for it; there is always a free one."""
    mask = len(table) - 1
    slot = low & mask
    while table[slot, _BEHIND] != 0:
        if table[slot, _LOW] == low and table[slot, _HIGH] == high:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def put_keys(
    hashes: TableIn, offsets: NumbersIn, chosen: MaskIn, start: int, table: TableOut, most: int,
    used: NumbersOut, replaced: BytesOut,
) -> int:  # fmt: skip
    """Take the chosen records, and set the bits of those that they replace; returns the index of
    the first one that finds no room.
    """
    for row in range(len(offsets)):
        _ask_ahead(hashes, row, table)
        if not chosen[row]:
            continue
        if offsets[row] - start >= 8 * len(replaced):
            return row
        slot = _slot_of(table, hashes[_LOW, row], hashes[_HIGH, row])
        if table[slot, _BEHIND] == 0:
            if used[0] >= most:
                return row
            used[0] += 1
            table[slot, _LOW] = hashes[_LOW, row]
            table[slot, _HIGH] = hashes[_HIGH, row]
        else:
            bit = table[slot, _BEHIND] - 1 - start
            replaced[bit >> 3] |= 1 << (bit & 7)
        table[slot, _BEHIND] = offsets[row] + 1
    return len(offsets)


@kernel
def find_replaced(
    hashes: TableIn, offsets: NumbersIn, chosen: MaskIn, table: TableIn, found: MaskOut
) -> None:
    """Say of the first records, as many as there are hashes, which have a later one in the table,
    of those that are chosen.
    """
    for row in range(hashes.shape[1]):
        _ask_ahead(hashes, row, table)
        if chosen[row]:
            slot = _slot_of(table, hashes[_LOW, row], hashes[_HIGH, row])
            found[row] = table[slot, _BEHIND] - 1 > offsets[row]


@kernel
def copy_replaced(
    offsets: NumbersIn, first: int, start: int, replaced: BytesIn, found: MaskOut
) -> None:
    """Say of the records from one on what their bits do."""
    for row in range(first, len(offsets)):
        bit = offsets[row] - start
        if bit >= 8 * len(replaced):
            break
        found[row] = (replaced[bit >> 3] >> (bit & 7)) & 1 != 0
