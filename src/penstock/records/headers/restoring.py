"""What was put into headers because an encoding could not express it, taken out of them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.arena import Arena, header_arena
from penstock.records.headers import reserved
from penstock.records.headers.selection import keep_headers, marked, rows_of
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
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, same_bytes, same_spans
from penstock.records.kernels.text import read_decimal, read_padded_base64

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Mask, Numbers

_KEY = reserved.constant(reserved.KEY)
_PACKED = reserved.constant(reserved.PACKED)
_BASE64 = reserved.constant(reserved.BASE64)
_TIMESTAMP = reserved.constant(reserved.TIMESTAMP)
_INDEX_DIGITS: Final = 9
_TIME_DIGITS: Final = 18


# Of a part of a packed header.
_HEADER: Final = 0
_ROW: Final = 1
_INDEX: Final = 2
_PART: Final = 3


def restore(columns: Columns) -> Columns:
    """Return the columns with everything taken out of headers that `escape` puts into them."""
    escaped = np.flatnonzero(marked(columns, reserved.PACKED, reserved.BASE64, reserved.TIMESTAMP))
    if len(escaped) == 0:
        return columns
    arena = header_arena(columns)
    sizes = columns.headers[field.CONTENT_SIZE, escaped]
    out = np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
    base = arena.add(out)
    kept = np.ones(columns.headers.shape[1], np.bool_)
    end = _unpack(columns, escaped, base, out, kept)
    rows = rows_of(columns, escaped)
    tables = (columns.records, columns.headers, escaped, rows)
    decode_values(columns.header_data, *tables, base, out, end, kept)
    columns.header_data = arena.join()
    return keep_headers(columns, kept)


def _unpack(columns: Columns, escaped: Numbers, base: int, out: Bytes, kept: Mask) -> int:
    """Replace the first part of every packed header by what was packed, and drop the others.

    Returns the position in `out` behind what was packed.
    """
    indexes, numbers = np.empty((2, len(escaped)), np.int64)
    read_packed_names(columns.header_data, columns.headers, escaped, indexes, numbers)
    packed = indexes >= 0
    rows = rows_of(columns, escaped[packed])
    parts = np.array([escaped[packed], rows, indexes[packed], numbers[packed]])
    parts = np.ascontiguousarray(parts[:, np.lexsort(parts[:0:-1])])
    text = np.empty(len(out), np.uint8)
    keys = np.full((2, parts.shape[1]), -1)
    of_iggy = columns.batches[field.MAGIC] == Magic.IGGY
    keyless = np.repeat(of_iggy, columns.batches[field.RECORDS])
    keyless &= columns.records[field.KEY_SIZE] < 0
    tables = (columns.header_data, columns.headers, parts)
    end = unpack_parts(*tables, keyless, text, base, out, kept, keys)
    _place_keys(columns, parts[_ROW], keys, out)
    return end


def _place_keys(columns: Columns, rows: Numbers, keys: Numbers, out: Bytes) -> None:
    """Give records the keys that were packed; they are kept behind the other keys and values.

    Of each record in `rows`, `keys` says where one lies in `out` and its size, -1 where none does.
    """
    found = np.flatnonzero(keys[1] >= 0)
    if len(found) == 0:
        return
    arena = Arena.behind(columns.data)
    starts, sizes = np.ascontiguousarray(keys[:, found])
    columns.records[field.KEY_START, rows[found]] = arena.gather(out, starts, sizes)
    columns.records[field.KEY_SIZE, rows[found]] = sizes
    columns.data = arena.join()


@kernel
def read_packed_names(
    data: BytesIn, headers: TableIn, escaped: NumbersIn, indexes: NumbersOut, parts: NumbersOut
) -> None:
    """Read the two numbers in the names of these headers; an index of -1 is another name."""
    for each in range(len(escaped)):
        start = headers[field.NAME_START, escaped[each]]
        size = headers[field.NAME_SIZE, escaped[each]]
        indexes[each] = -1
        parts[each] = 0
        if size <= len(_PACKED) or not same_spans(data, start, _PACKED, 0, len(_PACKED)):
            continue
        start += len(_PACKED)
        size -= len(_PACKED)
        digits = int64(0)
        while digits < size and data[start + digits] != ord("."):
            digits += 1
        if digits < size:
            parts[each] = read_decimal(data, start + digits + 1, size - digits - 1, _INDEX_DIGITS)
        if parts[each] >= 0:
            indexes[each] = read_decimal(data, start, digits, _INDEX_DIGITS)


@helper
def _join_parts(
    data: BytesIn, headers: TableIn, parts: TableIn, first: int, last: int, text: BytesOut
) -> int:
    """Write the values of these parts one behind the other; returns their size.

    Of a part that is there several times the last one counts.
    """
    size = int64(0)
    for each in range(first, last):
        if each + 1 < last and parts[_PART, each + 1] == parts[_PART, each]:
            continue
        header = parts[_HEADER, each]
        content = headers[field.CONTENT_SIZE, header]
        if content > 0:
            copy_bytes(text, size, data, headers[field.CONTENT_START, header], content)
            size += content
    return size


@helper
def _read_text(text: BytesIn, size: int, out: BytesOut, position: int) -> tuple[int, int, int]:
    """Read what was packed: the ends in `out` of its name and of its value, and the value's size.

    The first end is -1 where the text makes no sense.
    """
    colon = int64(0)
    while colon < size and text[colon] != ord(":"):
        colon += 1
    name = int64(-1)
    if colon < size:
        name = read_padded_base64(out, position, text, 0, colon)
    if name < 0:
        return name, name, int64(-1)
    if size == colon + 2 and text[colon + 1] == ord("-"):
        return name, name, int64(-1)
    end = read_padded_base64(out, name, text, colon + 1, size - colon - 1)
    return (name, end, end - name) if end >= 0 else (end, end, int64(-1))


@helper
def _drop_parts(parts: TableIn, first: int, last: int, kept: MaskOut) -> int:
    """Drop these headers; returns the one that came first."""
    place = parts[_HEADER, first]
    for each in range(first, last):
        kept[parts[_HEADER, each]] = False
        place = min(place, parts[_HEADER, each])
    return place


@kernel
def unpack_parts(
    data: BytesIn, headers: TableOut, parts: TableIn, keyless: MaskIn, text: BytesOut, base: int,
    out: BytesOut, kept: MaskOut, keys: TableOut,
) -> int:  # fmt: skip
    """Unpack headers whose parts are sorted by record, index and number; see `_unpack`.

    `keyless` are the records that may take a key. What makes no sense stays as it is.
    """
    position = first = int64(0)
    while first < parts.shape[1]:
        row = parts[_ROW, first]
        index = parts[_INDEX, first]
        last = first + 1
        while last < parts.shape[1] and parts[_ROW, last] == row and parts[_INDEX, last] == index:
            last += 1
        size = _join_parts(data, headers, parts, first, last, text)
        name_end, end, content = _read_text(text, size, out, position)
        if name_end >= 0:
            header = _drop_parts(parts, first, last, kept)
            if keyless[row] and index == 0 and same_bytes(out, position, name_end - position, _KEY):
                keys[0, first] = name_end
                keys[1, first] = content
            else:
                kept[header] = True
                headers[field.NAME_START, header] = base + position
                headers[field.NAME_SIZE, header] = name_end - position
                headers[field.CONTENT_START, header] = base + name_end
                headers[field.CONTENT_SIZE, header] = content
                headers[field.KINDS, header] = header_kinds.UNKNOWN
            position = end
        first = last
    return position


@helper
def _takes_time(data: BytesIn, headers: TableIn, header: int, records: TableOut, row: int) -> bool:
    """Take over a finer time, unless the record has been given another time since."""
    start = headers[field.CONTENT_START, header]
    size = headers[field.CONTENT_SIZE, header]
    negative = int64(1) if size > 0 and data[start] == ord("-") else int64(0)
    time = read_decimal(data, start + negative, size - negative, _TIME_DIGITS)
    if time < 0:
        return False
    if negative:
        time = -time
    if time > 0 and time // 1000 != records[field.TIMESTAMP, row] // 1000:
        return False
    records[field.TIMESTAMP, row] = time
    return True


@kernel
def decode_values(
    data: BytesIn, records: TableOut, headers: TableOut, escaped: NumbersIn, rows: NumbersIn,
    base: int, out: BytesOut, position: int, kept: MaskOut,
) -> None:  # fmt: skip
    """Decode the values that are in base64 to `out` from `position` on, and take over times."""
    for each in range(len(escaped)):
        header = escaped[each]
        start = headers[field.NAME_START, header]
        size = headers[field.NAME_SIZE, header]
        if not kept[header] or start >= base:
            continue
        if same_bytes(data, start, size, _TIMESTAMP):
            kept[header] = not _takes_time(data, headers, header, records, rows[each])
            continue
        content = headers[field.CONTENT_SIZE, header]
        if (
            content < 0
            or size < len(_BASE64)
            or not same_spans(data, start, _BASE64, 0, len(_BASE64))
        ):
            continue
        end = read_padded_base64(out, position, data, headers[field.CONTENT_START, header], content)
        if end < 0:
            continue
        headers[field.NAME_START, header] = start + len(_BASE64)
        headers[field.NAME_SIZE, header] = size - len(_BASE64)
        headers[field.CONTENT_START, header] = base + position
        headers[field.CONTENT_SIZE, header] = end - position
        headers[field.KINDS, header] = header_kinds.UNKNOWN
        position = end
