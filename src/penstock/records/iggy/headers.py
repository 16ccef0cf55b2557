"""What Iggy alone says about a message, as headers, and taken from them again."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from penstock.records.columns import Columns, Numbers
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.rewriting import Header, Rewriting, marked, read_headers, rows_of
from penstock.records.iggy.decode import write_kinds

_ID: Final = re.compile(rb"[0-9a-f]{32}")
_KINDS: Final = re.compile(rb"([1-9a-f][1-9a-f])+")
_SIZES: Final = {
    3: 1,
    4: 1,
    5: 2,
    6: 4,
    7: 8,
    8: 16,
    9: 1,
    10: 2,
    11: 4,
    12: 8,
    13: 16,
    14: 4,
    15: 8,
}
"""Bytes of the values of those kinds that have a fixed size."""


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
    taken = marked(columns, reserved.IGGY_ID, reserved.IGGY_KINDS)
    rows = rows_of(columns, taken)
    if not rows:
        return columns, ids
    rewriting = Rewriting(columns)
    for row in rows:
        headers = read_headers(columns, row)
        headers = _take_id(headers, ids, row)
        rewriting.set_headers(row, _take_kinds(headers))
    return rewriting.apply(), ids


def _take_id(headers: list[Header], ids: Numbers, row: int) -> list[Header]:
    for header in headers:
        if header.name == reserved.IGGY_ID and _ID.fullmatch(header.content or b""):
            number = np.frombuffer(bytes.fromhex((header.content or b"").decode()), ">i8")
            ids[:, row] = number[::-1]
            return [other for other in headers if other is not header]
    return headers


def _take_kinds(headers: list[Header]) -> list[Header]:
    """Give the headers the kinds that one of them lists, if they fit: a pair for each not ours."""
    listing = next((header for header in headers if header.name == reserved.IGGY_KINDS), None)
    if listing is None:
        return headers
    text = listing.content or b""
    plain = [header for header in headers if not header.name.startswith(reserved.PREFIX)]
    if not _KINDS.fullmatch(text) or len(text) != 2 * len(plain):
        return headers
    kinds = bytes.fromhex(text.decode())
    pairs = list(zip(plain, kinds, strict=True))
    if not all(_fit(header, both) for header, both in pairs):
        return headers
    kind_of = {id(header): kind for header, kind in pairs}
    return [
        header._replace(kinds=kind_of.get(id(header), header.kinds))
        for header in headers
        if header is not listing
    ]


def _fit(header: Header, kinds: int) -> bool:
    return _fits(header.name, kinds >> 4) and _fits(header.content, kinds & 15)


def _fits(content: bytes | None, kind: int) -> bool:
    if content is None:
        return False
    return len(content) == _SIZES.get(kind, len(content))
