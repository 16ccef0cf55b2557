"""Aborted transactions as readers who leave them out themselves are told of them (KIP-98).

Each is a row of Kafka's answers, so that a read takes what is there and makes nothing of each.
"""

from __future__ import annotations

import struct
import sys
from array import array
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW: Final = struct.Struct(">qqx")
"""Its producer's id, its first offset, and no tagged fields."""
_NUMBER_BYTES: Final = 8


def rows_of(producer_ids: array[int], first_offsets: array[int]) -> bytearray:
    """Return one row behind the other."""
    rows = bytearray(ROW.size * len(producer_ids))
    for place, column in enumerate((producer_ids, first_offsets)):
        numbers = array("q", column)
        if sys.byteorder == "little":
            numbers.byteswap()
        data = numbers.tobytes()
        for byte in range(_NUMBER_BYTES):
            rows[place * _NUMBER_BYTES + byte :: ROW.size] = data[byte::_NUMBER_BYTES]
    return rows


def joined(stretches: Sequence[bytearray]) -> bytes:
    """Return the rows of some stretches, each in the order of first offsets, in that order."""
    rows = b"".join(stretches)
    found = [each for each in stretches if each]
    if all(_first(a, len(a) - ROW.size) <= _first(b, 0) for a, b in pairwise(found)):
        return rows
    apart = [rows[at : at + ROW.size] for at in range(0, len(rows), ROW.size)]
    return b"".join(sorted(apart, key=partial(_first, at=0)))


def _first(rows: bytes | bytearray, at: int) -> bytes | bytearray:
    """Return the first offset in the row at a place, as it is ordered."""
    return rows[at + _NUMBER_BYTES : at + 2 * _NUMBER_BYTES]
