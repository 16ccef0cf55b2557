"""What an encoding can't express of a record, put into headers, and taken out of them again.

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
from penstock.records.headers.expressible import find_inexpressible, longest_field
from penstock.records.headers.rewriting import Header, Rewriting, marked, read_headers, rows_of
from penstock.records.iggy import layout

_NULL: Final = b"-"
_PACKED_NAME: Final = re.compile(re.escape(reserved.PACKED) + rb"([0-9]+)(?:\.([0-9]{1,9}))?")
_DECIMAL: Final = re.compile(rb"-?[0-9]{1,18}")


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
    """Return the columns with headers for what `target` can't express.

    Those that were given must not be used again.
    """
    columns = _escape_times(columns, target)
    inexpressible = find_inexpressible(columns, target)
    rows = set(rows_of(columns, inexpressible))
    if target == Magic.IGGY:
        sizes = columns.records[field.KEY_SIZE]
        rows |= set(np.flatnonzero((sizes == 0) | (sizes > layout.LONGEST_FIELD)).tolist())
    if not rows:
        return columns
    rewriting = Rewriting(columns)
    for row in sorted(rows):
        rewriting.set_headers(row, list(_escaped(rewriting, row, inexpressible, target)))
    return rewriting.apply()


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


def _escaped(
    rewriting: Rewriting, row: int, inexpressible: Mask, target: Magic
) -> Iterator[Header]:
    columns = rewriting.columns
    key = columns.key(row)
    if target == Magic.IGGY and key is not None and not 1 <= len(key) <= layout.LONGEST_FIELD:
        yield from _packed(Header(reserved.KEY, key), 0, layout.LONGEST_FIELD)
        rewriting.set_key(row, None)
    first = int(columns.header_start[row])
    headers = read_headers(columns, row)
    names = {header.name for header in headers}
    for index, header in enumerate(headers):
        if not inexpressible[first + index]:
            yield header
        elif target == Magic.PULSAR and _only_content_is_no_text(header, headers[:index], names):
            content = base64.b64encode(header.content or b"")
            yield Header(reserved.BASE64 + header.name, content, header_kinds.OF_TEXT)
        else:
            yield from _packed(header, index + 1, longest_field(target))


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
