"""Headers that are looked for by their names, and records that keep only some of their headers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.records.kernels.text import mark_prefixes

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Mask, Numbers


def marked(columns: Columns, *prefixes: bytes) -> Mask:
    """Return which headers have a name that begins with one of `prefixes`."""
    mask = np.zeros(columns.headers.shape[1], np.bool_)
    if len(mask):
        mark_prefixes(columns.header_data, columns.headers, *as_table(prefixes), mask)
    return mask


@cache
def as_table(names: tuple[bytes, ...]) -> tuple[Bytes, Numbers]:
    """Return names in one buffer, and where each one ends."""
    joined = np.frombuffer(b"".join(names), np.uint8)
    return joined, np.cumsum([len(name) for name in names])


def rows_of(columns: Columns, headers: Numbers) -> Numbers:
    """Return the record of each of these headers, which are given by their indexes."""
    rows: Numbers = np.searchsorted(columns.header_start, headers, side="right") - 1
    return rows


def keep_headers(columns: Columns, kept: Mask) -> Columns:
    """Return the columns with these headers alone; those that were given must not be used again."""
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    columns.headers = np.ascontiguousarray(columns.headers[:, kept])
    columns.header_start = before[columns.header_start]
    return columns
