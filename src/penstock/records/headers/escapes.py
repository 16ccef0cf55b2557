"""What an encoding can't express of a record, put into headers (docs/interop.md)."""

from __future__ import annotations

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.arena import checked_size, header_arena
from penstock.records.columns import Columns, Mask
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.expressible import BASE64, PLAIN, choose_forms, longest_field
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes
from penstock.records.kernels.text import base64_size, decimal_size, write_base64, write_decimal

_KEY = reserved.constant(reserved.KEY)
_PACKED = reserved.constant(reserved.PACKED)
_BASE64 = reserved.constant(reserved.BASE64)


def escape(columns: Columns, target: Magic) -> Columns:
    """Return the columns with headers for what `target` can't express.

    Those that were given must not be used again.
    """
    columns = _escape_times(columns, target)
    forms, largest = choose_forms(columns, target), longest_field(target)
    keys = find_packed_keys(columns, largest)
    if not forms.any() and not keys.any():
        return columns
    arena = header_arena(columns)
    starts = np.empty(len(columns) + 1, np.int64)
    tables = (columns.records, columns.headers, columns.header_start)
    size = checked_size(measure_escapes(*tables, forms, largest, starts))
    out = np.empty(size, np.uint8)
    headers = np.empty((field.HEADER_FIELDS, int(starts[-1])), np.int64)
    data = (columns.data, columns.header_data)
    write_escapes(*data, *tables, forms, largest, arena.add(out), headers, out)
    columns.records[field.KEY_SIZE, keys] = -1
    columns.headers, columns.header_start = headers, starts
    columns.header_data = arena.join()
    return columns


def find_packed_keys(columns: Columns, largest: int) -> Mask:
    """Return which keys have to be packed: Iggy has them as headers."""
    if largest != layout.LONGEST_FIELD:
        return np.zeros(len(columns), np.bool_)
    sizes = columns.records[field.KEY_SIZE]
    packed: Mask = (sizes == 0) | (sizes > largest)
    return packed


def _escape_times(columns: Columns, target: Magic) -> Columns:
    times = columns.records[field.TIMESTAMP]
    if target == Magic.IGGY:
        inexpressible = times < 0
    else:
        inexpressible = times % 1000 != 0
        inexpressible = (
            inexpressible | (times <= 0)
            if target == Magic.PULSAR
            else inexpressible & (times != -1)
        )
    if not inexpressible.any():
        return columns
    additions = Additions(columns)
    additions.add_decimals(reserved.TIMESTAMP, inexpressible, times)
    columns = additions.apply()
    if target != Magic.KAFKA:
        np.maximum(times, 0, out=columns.records[field.TIMESTAMP])
    return columns


@helper
def _packs_key(size: int, largest: int) -> bool:
    """As `find_packed_keys`."""
    return largest == layout.LONGEST_FIELD and (size == 0 or size > largest)


@helper
def _text_size(name: int, content: int) -> int:
    """Return the bytes of what a name and a value of these sizes are packed into."""
    return base64_size(name) + 1 + (base64_size(content) if content >= 0 else 1)


@helper
def _part_count(text: int, largest: int) -> int:
    return (text + largest - 1) // largest


@helper
def _packed_size(name: int, content: int, index: int, largest: int) -> int:
    """Return the bytes of a packed header: its text, and the names of all its parts."""
    text = _text_size(name, content)
    parts = _part_count(text, largest)
    size = text + parts * (len(_PACKED) + decimal_size(index))
    if parts > 1:
        for part in range(parts):
            size += 1 + decimal_size(part)
    return size


@kernel
def measure_escapes(
    records: TableIn,
    headers: TableIn,
    header_start: NumbersIn,
    forms: BytesIn,
    largest: int,
    starts: NumbersOut,
) -> int:
    """Write where each record's headers will start, and behind them how many there will be.

    Returns the bytes that are to be written for them.
    """
    place = size = 0
    for row in range(len(header_start) - 1):
        starts[row] = place
        key = records[field.KEY_SIZE, row]
        if _packs_key(key, largest):
            place += _part_count(_text_size(len(_KEY), key), largest)
            size += _packed_size(len(_KEY), key, 0, largest)
        first = header_start[row]
        for header in range(first, header_start[row + 1]):
            name = headers[field.NAME_SIZE, header]
            content = headers[field.CONTENT_SIZE, header]
            if forms[header] == PLAIN:
                place += 1
            elif forms[header] == BASE64:
                place += 1
                size += len(_BASE64) + name + base64_size(content)
            else:
                place += _part_count(_text_size(name, content), largest)
                size += _packed_size(name, content, header - first + 1, largest)
    starts[len(header_start) - 1] = place
    return size


@helper
def _fill(headers: TableOut, place: int, name: int, size: int, start: int, content: int) -> None:
    """Write one header whose name and value are text."""
    headers[field.NAME_START, place] = name
    headers[field.NAME_SIZE, place] = size
    headers[field.CONTENT_START, place] = start
    headers[field.CONTENT_SIZE, place] = content
    headers[field.KINDS, place] = header_kinds.OF_TEXT


@helper
def _write_text(
    out: BytesOut,
    position: int,
    names: BytesIn,
    name: int,
    name_size: int,
    data: BytesIn,
    start: int,
    size: int,
) -> int:
    """Write what a name and a value are packed into; returns the position behind it."""
    position = write_base64(out, position, names, name, name_size)
    out[position] = ord(":")
    position += 1
    if size < 0:
        out[position] = ord("-")
        return position + 1
    return write_base64(out, position, data, start, size)


@helper
def _write_parts(
    out: BytesOut,
    text: int,
    end: int,
    base: int,
    headers: TableOut,
    place: int,
    index: int,
    largest: int,
) -> tuple[int, int]:
    """Write the headers of a packed one whose text is there; returns where both outputs end."""
    position = end
    parts = _part_count(end - text, largest)
    for part in range(parts):
        named = position
        copy_bytes(out, position, _PACKED, 0, len(_PACKED))
        position = write_decimal(out, position + len(_PACKED), index)
        if parts > 1:
            out[position] = ord(".")
            position = write_decimal(out, position + 1, part)
        start = text + part * largest
        size = min(largest, end - start)
        _fill(headers, place, base + named, position - named, base + start, size)
        place += 1
    return position, place


@helper
def _write_in_base64(
    out: BytesOut, position: int, base: int, data: BytesIn, old: TableIn, header: int,
    headers: TableOut, place: int,
) -> int:  # fmt: skip
    """Write a header whose name says that its value is in base64; returns the position behind."""
    named = position
    size = old[field.NAME_SIZE, header]
    copy_bytes(out, position, _BASE64, 0, len(_BASE64))
    position += len(_BASE64)
    copy_bytes(out, position, data, old[field.NAME_START, header], size)
    position += size
    text = position
    start = old[field.CONTENT_START, header]
    position = write_base64(out, position, data, start, old[field.CONTENT_SIZE, header])
    _fill(headers, place, base + named, text - named, base + text, position - text)
    return position


@kernel
def write_escapes(
    data: BytesIn, header_data: BytesIn, records: TableIn, old: TableIn, old_start: NumbersIn,
    forms: BytesIn, largest: int, base: int, headers: TableOut, out: BytesOut,
) -> None:  # fmt: skip
    """Write the headers of every record, and to `out`, which will lie at `base`, what is new."""
    position = place = 0
    for row in range(len(old_start) - 1):
        size = records[field.KEY_SIZE, row]
        if _packs_key(size, largest):
            start = records[field.KEY_START, row]
            end = _write_text(out, position, _KEY, 0, len(_KEY), data, start, size)
            position, place = _write_parts(out, position, end, base, headers, place, 0, largest)
        first = old_start[row]
        for header in range(first, old_start[row + 1]):
            if forms[header] == PLAIN:
                for each in range(field.HEADER_FIELDS):
                    headers[each, place] = old[each, header]
                place += 1
                continue
            if forms[header] == BASE64:
                position = _write_in_base64(
                    out, position, base, header_data, old, header, headers, place
                )
                place += 1
                continue
            end = _write_text(
                out, position, header_data, old[field.NAME_START, header],
                old[field.NAME_SIZE, header], header_data, old[field.CONTENT_START, header],
                old[field.CONTENT_SIZE, header],
            )  # fmt: skip
            index = header - first + 1
            position, place = _write_parts(out, position, end, base, headers, place, index, largest)
