"""Which headers an encoding can express, by their sizes, their kinds and the names beside them."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.columns import Columns, Mask
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import BytesIn, MaskOut, NumbersIn, TableIn
from penstock.records.kernels.jit import helper, kernel
from penstock.records.kernels.primitives import is_text, same_spans

_UNLIMITED: Final = 1 << 31
_PAIRWISE_HEADERS: Final = 64
"""Up to so many headers of a record are compared with each other to find equal names."""

# The limits of an encoding: the sizes of names and values, whether a value may be null, a name
# repeat, a value be other than text, and a name be of a kind that is not a string.
_SMALLEST: Final = 0
_LARGEST: Final = 1
_NULLS: Final = 2
_DUPLICATES: Final = 3
_ANY_BYTES: Final = 4
_ANY_NAMES: Final = 5
_LIMITS: Final = {
    Magic.KAFKA: np.array([0, _UNLIMITED, True, True, True, False]),
    Magic.PULSAR: np.array([0, _UNLIMITED, False, False, False, False]),
    Magic.IGGY: np.array([1, layout.LONGEST_FIELD, False, False, True, True]),
}


def find_inexpressible(columns: Columns, target: Magic) -> Mask:
    """Return which headers `target` can't express as they are."""
    found = np.zeros(columns.headers.shape[1], np.bool_)
    tables = (columns.headers, columns.header_start)
    mark_inexpressible(columns.header_data, *tables, _LIMITS[target], found)
    return found


def longest_field(target: Magic) -> int:
    """Return the bytes of the longest name and of the longest value."""
    return int(_LIMITS[target][_LARGEST])


@helper
def _has_equal(data: BytesIn, headers: TableIn, first: int, header: int) -> bool:
    """Whether an earlier header of the record has the same name."""
    size = headers[field.NAME_SIZE, header]
    start = headers[field.NAME_START, header]
    for other in range(first, header):
        if headers[field.NAME_SIZE, other] != size:
            continue
        if same_spans(data, start, data, headers[field.NAME_START, other], size):
            return True
    return False


@helper
def _is_expressible(data: BytesIn, headers: TableIn, header: int, limits: NumbersIn) -> bool:
    name = headers[field.NAME_SIZE, header]
    content = headers[field.CONTENT_SIZE, header]
    kinds = headers[field.KINDS, header]
    if name < limits[_SMALLEST] or name > limits[_LARGEST]:
        return False
    is_string = (
        kinds >> 4 == header_kinds.STRING or kinds == header_kinds.UNKNOWN or not limits[_ANY_NAMES]
    )
    if is_string and not is_text(data, headers[field.NAME_START, header], name):
        return False
    if content < 0:
        return limits[_NULLS] != 0
    if content < limits[_SMALLEST] or content > limits[_LARGEST]:
        return False
    if limits[_ANY_BYTES] and kinds & 15 != header_kinds.STRING:
        return True
    return is_text(data, headers[field.CONTENT_START, header], content)


@kernel
def mark_inexpressible(
    data: BytesIn, headers: TableIn, header_start: NumbersIn, limits: NumbersIn, out: MaskOut
) -> None:
    """Mark the headers that these limits rule out. Of equal names the first may stay.

    In a record of very many headers all are marked where names must differ.
    """
    for row in range(len(header_start) - 1):
        first = header_start[row]
        last = header_start[row + 1]
        for header in range(first, last):
            if not _is_expressible(data, headers, header, limits):
                out[header] = True
            elif not limits[_DUPLICATES]:
                crowded = last - first > _PAIRWISE_HEADERS
                out[header] = crowded or _has_equal(data, headers, first, header)
