"""The highest offset of each key, in a table of fixed size: keys are known by a hash of 128 bits.

It is what Kafka's cleaner calls its dedupe buffer. Where two keys had one hash, the older one would
lose its last record, so the hash is one that nobody outside can aim at.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.records import field
from penstock.records.kernels.arguments import (
    BytesIn,
    MaskIn,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.siphash import siphash

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


class OffsetMap:
    """Takes keys until it is full, and says which offset of a key is the highest of those taken."""

    def __init__(self, size_bytes: int) -> None:
        slots = 1 << max(4, (size_bytes // SLOT_BYTES).bit_length() - 1)
        self._table = np.zeros((slots, _SLOT_FIELDS), np.int64)
        self._most = int(slots * _LOAD)
        self._used = np.zeros(1, np.int64)
        self._secret = (_secret(), _secret())

    def __len__(self) -> int:
        return int(self._used[0])

    def clear(self) -> None:
        """Forget all keys."""
        self._table.fill(0)
        self._used.fill(0)

    def hashes(self, columns: Columns) -> Numbers:
        """Return the hash of each record's key, in two rows."""
        hashes = np.zeros((2, len(columns)), np.int64)
        hash_keys(columns.data, columns.records, *self._secret, hashes)
        return hashes

    def put(self, columns: Columns, chosen: Mask) -> int:
        """Take the keys of the chosen records; returns the index of the first that finds no room,
        or the number of records.
        """
        offsets = np.ascontiguousarray(columns.offsets)
        return put_keys(self.hashes(columns), offsets, chosen, self._table, self._most, self._used)

    def latest(self, columns: Columns, chosen: Mask) -> Numbers:
        """Return the highest offset of the key of each chosen record, -1 where it has none."""
        latest = np.full(len(columns), -1, np.int64)
        find_keys(self.hashes(columns), chosen, self._table, latest)
        return latest


def _secret() -> int:
    return int.from_bytes(secrets.token_bytes(8), signed=True)


@kernel
def hash_keys(data: BytesIn, records: TableIn, low: int, high: int, hashes: TableOut) -> None:
    """Fill in the hash of each key that there is."""
    for row in range(records.shape[1]):
        size = records[field.KEY_SIZE, row]
        if size >= 0:
            start = records[field.KEY_START, row]
            first, second = siphash(data, start, size, uint64(low), uint64(high))
            hashes[_LOW, row] = int64(first)
            hashes[_HIGH, row] = int64(second)


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
    hashes: TableIn,
    offsets: NumbersIn,
    chosen: MaskIn,
    table: TableOut,
    most: int,
    used: NumbersOut,
) -> int:
    """Take the chosen records; returns the index of the first one that finds no room."""
    for row in range(len(offsets)):
        if not chosen[row]:
            continue
        slot = _slot_of(table, hashes[_LOW, row], hashes[_HIGH, row])
        if table[slot, _BEHIND] == 0:
            if used[0] >= most:
                return row
            used[0] += 1
            table[slot, _LOW] = hashes[_LOW, row]
            table[slot, _HIGH] = hashes[_HIGH, row]
        table[slot, _BEHIND] = max(table[slot, _BEHIND], offsets[row] + 1)
    return len(offsets)


@kernel
def find_keys(hashes: TableIn, chosen: MaskIn, table: TableIn, latest: NumbersOut) -> None:
    """Fill in the highest offset of each chosen record's key."""
    for row in range(len(latest)):
        if chosen[row]:
            slot = _slot_of(table, hashes[_LOW, row], hashes[_HIGH, row])
            latest[row] = table[slot, _BEHIND] - 1
