"""Which of a read's batches somebody sees who reads what is committed, found in one step for all of
it: of small transactions there are more markers, and messages that were aborted, than others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    PREFIX_SIZE,
)
from penstock.records.kernels.arguments import BytesIn, NumbersOut, TableIn, TableOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import load_big

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Numbers

_LENGTH_AT: Final = 8
_LOW_ATTRIBUTES_AT: Final = 22
_LAST_DELTA_AT: Final = 23
_PRODUCER_AT: Final = 43
_COUNT_AT: Final = 57
_SEEN_FIELDS: Final = 3


class Shown(NamedTuple):
    """Of the batches that are seen, where each begins in what was read, its first offset and the
    one behind it; and the offset behind all that was looked at.
    """

    positions: Numbers
    starts: Numbers
    ends: Numbers
    end: int


def shown(batches: Bytes, aborted: Numbers, start: int) -> Shown:
    """Look through whole batches, the first of which is at offset `start`.

    `aborted` has a column for each aborted transaction that has any of them, by producer ids and
    then by first offsets: these, and the offset of its marker.
    """
    table = np.empty((_SEEN_FIELDS, len(batches) // HEADER_SIZE), np.int64)
    found = np.array([0, start], np.int64)
    look_through(batches, aborted, table, found)
    count, end = found.tolist()
    positions, starts, ends = table[:, :count]
    return Shown(positions, starts, ends, end)


@helper
def _was_aborted(aborted: TableIn, producer_id: int, offset: int) -> bool:
    low, high = 0, aborted.shape[1]
    while low < high:
        middle = (low + high) // 2
        other = aborted[0, middle]
        if other < producer_id or (other == producer_id and aborted[1, middle] <= offset):
            low = middle + 1
        else:
            high = middle
    # Those of one producer follow one another.
    return low > 0 and aborted[0, low - 1] == producer_id and offset < aborted[2, low - 1]


@kernel
def look_through(data: BytesIn, aborted: TableIn, seen: TableOut, found: NumbersOut) -> None:
    """Fill the table with what is seen, and say how many that is and which offset is behind all."""
    position, count = int64(0), int64(0)
    while position + HEADER_SIZE <= len(data):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        if size < HEADER_SIZE or size > len(data) - position:
            break
        start = load_big(data, position, 8)
        end = start + load_big(data, position + _LAST_DELTA_AT, 4) + 1
        attributes = data[position + _LOW_ATTRIBUTES_AT]
        is_seen = not attributes & ATTRIBUTE_CONTROL
        if is_seen and attributes & ATTRIBUTE_TRANSACTIONAL and aborted.shape[1]:
            producer_id = load_big(data, position + _PRODUCER_AT, 8)
            is_seen = not _was_aborted(aborted, producer_id, start)
        if is_seen and load_big(data, position + _COUNT_AT, 4):
            seen[0, count] = position
            seen[1, count] = start
            seen[2, count] = end
            count += 1
        position += size
        found[1] = end
    found[0] = count
