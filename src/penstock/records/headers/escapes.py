"""What an encoding can't say about a record, put into headers, and taken out of them again.

The rules are those of docs/interop.md. Few records need this, so they are handled one by one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.columns import Columns, Mask
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.rewriting import Header, Rewriting, marked, read_headers, rows_of
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import BytesIn, MaskOut, NumbersIn, TableIn
from penstock.records.kernels.jit import helper, kernel
from penstock.records.kernels.primitives import is_text, same_spans

_UNLIMITED: Final = 1 << 31
_NULL: Final = b"-"
_PACKED_NAME: Final = re.compile(re.escape(reserved.PACKED) + rb"([0-9]+)(?:\.([0-9]{1,9}))?")
_DECIMAL: Final = re.compile(rb"-?[0-9]{1,18}")
_PAIRWISE_HEADERS: Final = 64
"""Up to so many headers of a record are compared with each other to find equal names."""


# What the headers of an encoding can say: the sizes of names and values, whether a value may be
# null, a name repeat, a value be other than text, and a name that is not said to be a string.
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


def restore(columns: Columns) -> Columns:
    """Return the columns with everything taken out of headers that `escape` puts into them."""
    escaped = marked(columns, reserved.PACKED, reserved.BASE64, reserved.TIMESTAMP)
    rows = rows_of(columns, escaped)
    if not rows:
        return columns
    rewriting = Rewriting(columns)
    for row in rows:
        rewriting.set_headers(row, list(_restored(rewriting, row, read_headers(columns, row))))
    return rewriting.apply()


def escape(columns: Columns, target: Magic) -> Columns:
    """Return the columns with headers for what `target` can't say; they are spent."""
    columns = _escape_times(columns, target)
    unsayable = np.zeros(columns.headers.shape[1], np.bool_)
    tables = (columns.headers, columns.header_start)
    mark_unsayable(columns.header_data, *tables, _LIMITS[target], unsayable)
    rows = set(rows_of(columns, unsayable))
    if target == Magic.IGGY:
        sizes = columns.records[field.KEY_SIZE]
        rows |= set(np.flatnonzero((sizes == 0) | (sizes > layout.LONGEST_FIELD)).tolist())
    if not rows:
        return columns
    rewriting = Rewriting(columns)
    for row in sorted(rows):
        rewriting.set_headers(row, list(_escaped(rewriting, row, unsayable, target)))
    return rewriting.apply()


def _escape_times(columns: Columns, target: Magic) -> Columns:
    times = columns.records[field.TIMESTAMP]
    if target == Magic.IGGY:
        unsayable = times < 0
    else:
        unsayable = times % 1000 != 0
        unsayable = (
            unsayable | (times <= 0) if target == Magic.PULSAR else unsayable & (times != -1)
        )
    if not unsayable.any():
        return columns
    additions = Additions(columns)
    additions.add_decimals(reserved.TIMESTAMP, unsayable, times)
    columns = additions.apply()
    if target != Magic.KAFKA:
        np.maximum(times, 0, out=columns.records[field.TIMESTAMP])
    return columns


def _escaped(rewriting: Rewriting, row: int, unsayable: Mask, target: Magic) -> Iterator[Header]:
    columns = rewriting.columns
    key = columns.key(row)
    if target == Magic.IGGY and key is not None and not 1 <= len(key) <= layout.LONGEST_FIELD:
        yield from _packed(Header(reserved.KEY, key), 0, layout.LONGEST_FIELD)
        rewriting.set_key(row, None)
    first = int(columns.header_start[row])
    headers = read_headers(columns, row)
    names = {header.name for header in headers}
    for index, header in enumerate(headers):
        if not unsayable[first + index]:
            yield header
        elif target == Magic.PULSAR and _only_content_is_no_text(header, headers[:index], names):
            content = base64.b64encode(header.content or b"")
            yield Header(reserved.BASE64 + header.name, content, header_kinds.OF_TEXT)
        else:
            largest = layout.LONGEST_FIELD if target == Magic.IGGY else _UNLIMITED
            yield from _packed(header, index + 1, largest)


def _only_content_is_no_text(header: Header, earlier: list[Header], names: set[bytes]) -> bool:
    if header.content is None or reserved.BASE64 + header.name in names:
        return False
    return _is_text(header.name) and all(header.name != other.name for other in earlier)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _packed(header: Header, index: int, largest: int) -> Iterator[Header]:
    content = _NULL if header.content is None else base64.b64encode(header.content)
    text = base64.b64encode(header.name) + b":" + content
    name = reserved.PACKED + b"%d" % index
    if len(text) <= largest:
        yield Header(name, text, header_kinds.OF_TEXT)
        return
    for part, start in enumerate(range(0, len(text), largest)):
        yield Header(b"%s.%d" % (name, part), text[start : start + largest], header_kinds.OF_TEXT)


def _restored(rewriting: Rewriting, row: int, headers: list[Header]) -> Iterator[Header]:
    packed = _unpack(headers)
    for header in headers:
        name, content = header.name, header.content or b""
        if (index := _packed_index(name)) in packed:
            unpacked = packed[index]
            if unpacked is not None and not _restore_key(rewriting, row, unpacked):
                yield unpacked
            packed[index] = None
        elif name.startswith(reserved.BASE64) and (decoded := _decode(content)) is not None:
            yield Header(name.removeprefix(reserved.BASE64), decoded, header_kinds.UNKNOWN)
        elif name != reserved.TIMESTAMP or not _restore_time(rewriting, row, content):
            yield header


def _packed_index(name: bytes) -> bytes | None:
    found = _PACKED_NAME.fullmatch(name)
    return found[1] if found else None


def _unpack(headers: list[Header]) -> dict[bytes | None, Header | None]:
    """Return what was packed, by its index; what makes no sense is left out."""
    parts: dict[bytes, dict[int, bytes]] = {}
    for header in headers:
        if found := _PACKED_NAME.fullmatch(header.name):
            parts.setdefault(found[1], {})[int(found[2] or 0)] = header.content or b""
    unpacked: dict[bytes | None, Header | None] = {}
    for index, numbered in parts.items():
        name, colon, content = b"".join(numbered[n] for n in sorted(numbered)).partition(b":")
        decoded, value = _decode(name), None if content == _NULL else _decode(content)
        if colon and decoded is not None and (value is not None or content == _NULL):
            unpacked[index] = Header(decoded, value, header_kinds.UNKNOWN)
    return unpacked


def _decode(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _restore_key(rewriting: Rewriting, row: int, header: Header) -> bool:
    """A key that was too long or too short for an Iggy header is the record's key again."""
    columns = rewriting.columns
    if header.name != reserved.KEY or columns.records[field.KEY_SIZE, row] >= 0:
        return False
    batch = np.searchsorted(columns.batches[field.FIRST_RECORD], row, side="right") - 1
    if columns.batches[field.MAGIC, batch] != Magic.IGGY:
        return False
    rewriting.set_key(row, header.content)
    return True


def _restore_time(rewriting: Rewriting, row: int, text: bytes) -> bool:
    """Take over a finer time, unless the record has been given another time since."""
    if not _DECIMAL.fullmatch(text):
        return False
    time, coarse = int(text), int(rewriting.columns.records[field.TIMESTAMP, row])
    if time > 0 and time // 1000 != coarse // 1000:
        return False
    rewriting.set_time(row, time)
    return True


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
def _is_sayable(data: BytesIn, headers: TableIn, header: int, limits: NumbersIn) -> bool:
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
def mark_unsayable(
    data: BytesIn, headers: TableIn, header_start: NumbersIn, limits: NumbersIn, out: MaskOut
) -> None:
    """Mark the headers that these limits rule out. Of equal names the first may stay.

    In a record of very many headers all are marked where names must differ.
    """
    for row in range(len(header_start) - 1):
        first = header_start[row]
        last = header_start[row + 1]
        for header in range(first, last):
            if not _is_sayable(data, headers, header, limits):
                out[header] = True
            elif not limits[_DUPLICATES]:
                crowded = last - first > _PAIRWISE_HEADERS
                out[header] = crowded or _has_equal(data, headers, first, header)
