"""What Iggy alone says about a message, as headers, and taken from them again."""

from __future__ import annotations

import numpy as np

from penstock.records import field
from penstock.records.columns import Columns, Numbers
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.selection import keep_headers, marked
from penstock.records.iggy.decode import ID_DIGITS, is_reserved, write_kinds
from penstock.records.kernels.arguments import BytesIn, MaskOut, NumbersIn, TableIn, TableOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import same_bytes

_ID = reserved.constant(reserved.IGGY_ID)
_KINDS = reserved.constant(reserved.IGGY_KINDS)
_SIZES = np.array([0, 0, 0, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 4, 8], np.int64)
"""Bytes of the values of each kind that has a fixed size, else 0."""


def add_iggy_kinds(columns: Columns, *, text: bool) -> Columns:
    """Return the columns with a header for kinds that are not those of a plain header.

    A plain header's value is bytes; with `text` it is a string where it can be.
    """
    if columns.headers.shape[1] == 0:
        return columns
    starts, sizes = np.empty((2, len(columns)), np.int64)
    kinds = np.empty(2 * columns.headers.shape[1], np.uint8)
    tables = (columns.batches, columns.headers, columns.header_start)
    end = write_kinds(columns.header_data, *tables, int(text), starts, sizes, kinds)
    if end == 0:
        return columns
    additions = Additions(columns)
    additions.add_text(reserved.IGGY_KINDS, kinds[:end], starts, sizes)
    return additions.apply()


def take_iggy_headers(columns: Columns) -> tuple[Columns, Numbers]:
    """Return the columns without the headers that a frame can express by itself, and message ids.

    The ids are a table of their low and their high halves.
    """
    ids = np.zeros((2, len(columns)), np.int64)
    if not marked(columns, reserved.IGGY_ID, reserved.IGGY_KINDS).any():
        return columns, ids
    kept = np.ones(columns.headers.shape[1], np.bool_)
    take_ids_and_kinds(columns.header_data, columns.headers, columns.header_start, ids, kept)
    return keep_headers(columns, kept), ids


@helper
def _hex_digit(byte: int) -> int:
    """Return the value of a digit, written in lower case, or -1."""
    if ord("0") <= byte <= ord("9"):
        return int64(byte) - ord("0")
    return int64(byte) - ord("a") + 10 if ord("a") <= byte <= ord("f") else int64(-1)


@helper
def _take_id(data: BytesIn, headers: TableIn, header: int, ids: TableOut, row: int) -> bool:
    if headers[field.CONTENT_SIZE, header] != ID_DIGITS:
        return False
    start = headers[field.CONTENT_START, header]
    for position in range(start, start + ID_DIGITS):
        if _hex_digit(data[position]) < 0:
            return False
    for half in range(2):
        number = int64(0)
        for index in range(ID_DIGITS // 2):
            number = number << 4 | _hex_digit(data[start + half * (ID_DIGITS // 2) + index])
        ids[1 - half, row] = number
    return True


@helper
def _fits(size: int, kind: int) -> bool:
    if kind < 1 or size < 0:
        return False
    expected = int64(_SIZES[kind])
    return expected in (0, size)


@helper
def _take_kinds(data: BytesIn, headers: TableOut, first: int, last: int, listing: int) -> bool:
    """Give a record's headers the kinds that one of them lists: a pair of digits for each not ours.

    False, and nothing is changed, where they don't fit.
    """
    start = headers[field.CONTENT_START, listing]
    end = start + headers[field.CONTENT_SIZE, listing]
    position = start
    for header in range(first, last):
        if is_reserved(data, headers, header):
            continue
        if position + 2 > end or not (
            _fits(headers[field.NAME_SIZE, header], _hex_digit(data[position]))
            and _fits(headers[field.CONTENT_SIZE, header], _hex_digit(data[position + 1]))
        ):
            return False
        position += 2
    if position != end or position == start:
        return False
    for header in range(first, last):
        if not is_reserved(data, headers, header):
            kinds = _hex_digit(data[start]) << 4 | _hex_digit(data[start + 1])
            headers[field.KINDS, header] = kinds
            start += 2
    return True


@kernel
def take_ids_and_kinds(
    data: BytesIn, headers: TableOut, header_start: NumbersIn, ids: TableOut, kept: MaskOut
) -> None:
    """Take the first id and the first list of kinds that make sense from each record."""
    for row in range(len(header_start) - 1):
        first = header_start[row]
        last = header_start[row + 1]
        listing = int64(-1)
        has_id = False
        for header in range(first, last):
            start = headers[field.NAME_START, header]
            size = headers[field.NAME_SIZE, header]
            if not has_id and same_bytes(data, start, size, _ID):
                has_id = _take_id(data, headers, header, ids, row)
                kept[header] = not has_id
            elif listing < 0 and same_bytes(data, start, size, _KINDS):
                listing = header
        if listing >= 0 and _take_kinds(data, headers, first, last, listing):
            kept[listing] = False
