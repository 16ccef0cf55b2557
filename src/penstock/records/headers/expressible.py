"""In which form an encoding can have each header: by sizes, kinds and the names beside it."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.columns import Bytes, Columns
from penstock.records.headers import reserved
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import is_text, same_spans
from penstock.records.kernels.xxh3 import xxh3_64

PLAIN: Final = 0
PACKED: Final = 1
BASE64: Final = 2

_UNLIMITED: Final = 1 << 31
_PAIRWISE_HEADERS: Final = 16
"""Up to so many headers of a record are compared with each other to find equal names."""
_PROBES: Final = 32
"""Places of the table of names that are tried for one name."""
_BASE64 = reserved.constant(reserved.BASE64)

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


def choose_forms(columns: Columns, target: Magic) -> Bytes:
    """Return how `target` can have each header: PLAIN, with its value in BASE64, or PACKED."""
    forms = np.zeros(columns.headers.shape[1], np.uint8)
    if len(forms):
        most = int(np.diff(columns.header_start).max())
        hashes = np.empty(1 << (2 * most).bit_length(), np.int64)
        rows = np.full(len(hashes), -1)
        tables = (columns.headers, columns.header_start)
        fill_forms(columns.header_data, *tables, _LIMITS[target], hashes, rows, forms)
    return forms


def longest_field(target: Magic) -> int:
    """Return the bytes of the longest name and of the longest value."""
    return int(_LIMITS[target][_LARGEST])


@helper
def _is_repeated(
    data: BytesIn, headers: TableIn, first: int, header: int, row: int, hashes: NumbersOut,
    rows: NumbersOut, crowded: bool,
) -> bool:  # fmt: skip
    """Whether an earlier header of the record has the same name, or might have in a crowded one.

    There each name takes one of the first free places behind that of its hash. Two hashes that are
    the same, or a place that is not found soon, count as a repetition: that is always safe to say.
    """
    size = headers[field.NAME_SIZE, header]
    start = headers[field.NAME_START, header]
    if not crowded:
        for other in range(first, header):
            if headers[field.NAME_SIZE, other] == size and same_spans(
                data, start, data, headers[field.NAME_START, other], size
            ):
                return True
        return False
    hashed = int64(xxh3_64(data, start, size))
    for probe in range(_PROBES):
        place = (hashed + probe) & (len(hashes) - 1)
        if rows[place] != row:
            rows[place] = row
            hashes[place] = hashed
            return False
        if hashes[place] == hashed:
            return True
    return True


@helper
def _is_name(data: BytesIn, headers: TableIn, header: int, limits: NumbersIn) -> bool:
    """Whether the encoding can have a header of this name and kind of name."""
    size = headers[field.NAME_SIZE, header]
    kinds = headers[field.KINDS, header]
    if size < limits[_SMALLEST] or size > limits[_LARGEST]:
        return False
    is_string = (
        kinds >> 4 == header_kinds.STRING or kinds == header_kinds.UNKNOWN or not limits[_ANY_NAMES]
    )
    return not is_string or is_text(data, headers[field.NAME_START, header], size)


@helper
def _form(data: BytesIn, headers: TableIn, header: int, limits: NumbersIn) -> int:
    """Return the form of a header whose name no other one has."""
    content = headers[field.CONTENT_SIZE, header]
    if not _is_name(data, headers, header, limits):
        return PACKED
    if content < 0:
        return PLAIN if limits[_NULLS] else PACKED
    if content < limits[_SMALLEST] or content > limits[_LARGEST]:
        return PACKED
    if limits[_ANY_BYTES] and headers[field.KINDS, header] & 15 != header_kinds.STRING:
        return PLAIN
    is_plain = is_text(data, headers[field.CONTENT_START, header], content)
    return PLAIN if is_plain else PACKED if limits[_ANY_BYTES] else BASE64


@helper
def _has_base64(data: BytesIn, headers: TableIn, first: int, last: int) -> bool:
    """Whether a header is named as one whose value is in base64 would be."""
    for header in range(first, last):
        if headers[field.NAME_SIZE, header] >= len(_BASE64) and same_spans(
            data, headers[field.NAME_START, header], _BASE64, 0, len(_BASE64)
        ):
            return True
    return False


@kernel
def fill_forms(
    data: BytesIn, headers: TableIn, header_start: NumbersIn, limits: NumbersIn,
    hashes: NumbersOut, rows: NumbersOut, forms: BytesOut,
) -> None:  # fmt: skip
    """Write the form of each header. Of equal names the first may stay plain.

    `hashes` and `rows` are a table of names for one record at a time; all `rows` are -1. It has
    at least twice as many places as a record has headers, a power of two.
    """
    for row in range(len(header_start) - 1):
        first = header_start[row]
        last = header_start[row + 1]
        crowded = last - first > _PAIRWISE_HEADERS
        none_in_base64 = _has_base64(data, headers, first, last)
        for header in range(first, last):
            form = _form(data, headers, header, limits)
            if form == BASE64 and none_in_base64:
                form = PACKED
            if not limits[_DUPLICATES] and _is_repeated(
                data, headers, first, header, row, hashes, rows, crowded
            ):
                form = PACKED
            forms[header] = form
