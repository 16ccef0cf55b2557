"""Records whose headers are rewritten one by one: the few with what an encoding can't express."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from penstock.records import field, header_kinds
from penstock.records.arena import Arena, header_arena
from penstock.records.columns import Bytes, Columns, Mask, Numbers
from penstock.records.kernels.text import mark_prefixes


class Header(NamedTuple):
    """One header as Python knows it; `kinds` as in the table of headers."""

    name: bytes
    content: bytes | None
    kinds: int = header_kinds.OF_BYTES


def marked(columns: Columns, *prefixes: bytes) -> Mask:
    """Return which headers have a name that begins with one of `prefixes`."""
    mask = np.zeros(columns.headers.shape[1], np.bool_)
    if len(mask):
        mark_prefixes(columns.header_data, columns.headers, *_as_table(prefixes), mask)
    return mask


@cache
def _as_table(prefixes: tuple[bytes, ...]) -> tuple[Bytes, Numbers]:
    """Return them in one buffer, and where each one ends."""
    joined = np.frombuffer(b"".join(prefixes), np.uint8)
    return joined, np.cumsum([len(prefix) for prefix in prefixes])


def rows_of(columns: Columns, headers: Mask) -> list[int]:
    """Return the records that have one of these headers, in order."""
    if not headers.any():
        return []
    rows: list[int] = np.unique(columns.header_rows[headers]).tolist()
    return rows


def read_headers(columns: Columns, row: int) -> list[Header]:
    """Return the headers of one record."""
    return [
        Header(
            columns.name(index), columns.content(index), int(columns.headers[field.KINDS, index])
        )
        for index in range(columns.header_start[row], columns.header_start[row + 1])
    ]


@dataclass(slots=True)
class Rewriting:
    """Collects new headers, keys and times of some records, and then makes columns of them."""

    columns: Columns
    arena: Arena = dataclasses.field(init=False)
    _headers: dict[int, list[Header]] = dataclasses.field(default_factory=dict)
    _keys: dict[int, bytes | None] = dataclasses.field(default_factory=dict)
    _times: dict[int, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arena = header_arena(self.columns)

    def set_headers(self, row: int, headers: list[Header]) -> None:
        self._headers[row] = headers

    def set_key(self, row: int, key: bytes | None) -> None:
        self._keys[row] = key

    def set_time(self, row: int, microseconds: int) -> None:
        self._times[row] = microseconds

    def add(self, content: bytes | None) -> tuple[int, int]:
        """Keep some bytes; returns the start and the size that a table of headers says of them."""
        if content is None:
            return 0, -1
        return self.arena.add_bytes(content), len(content)

    def apply(self) -> Columns:
        """Return the columns with the changes; those that were given must not be used again."""
        columns = self.columns
        for row, time in self._times.items():
            columns.records[field.TIMESTAMP, row] = time
        columns.headers, columns.header_start = self._tables()
        columns.header_data = self.arena.join()
        columns.data = self._place_keys()
        return columns

    def _place_keys(self) -> Bytes:
        """Return the buffer of keys and values, with the new keys behind it."""
        arena = Arena.behind(self.columns.data)
        for row, key in self._keys.items():
            place = (0, -1) if key is None else (arena.add_bytes(key), len(key))
            self.columns.records[[field.KEY_START, field.KEY_SIZE], row] = place
        return arena.join()

    def _tables(self) -> tuple[Numbers, Numbers]:
        columns = self.columns
        counts = np.diff(columns.header_start)
        kept = np.ones(columns.headers.shape[1], np.bool_)
        old = counts.copy()
        for row, replaced in self._headers.items():
            kept[columns.header_start[row] : columns.header_start[row + 1]] = False
            counts[row] = len(replaced)
        header_start = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(counts, out=header_start[1:])
        headers = np.empty((field.HEADER_FIELDS, int(header_start[-1])), np.int64)
        moved = np.repeat(header_start[:-1] - columns.header_start[:-1], old)
        places = (np.arange(len(kept)) + moved)[kept]
        headers[:, places] = columns.headers[:, kept]
        for row, replaced in self._headers.items():
            for index, header in enumerate(replaced, int(header_start[row])):
                headers[[field.NAME_START, field.NAME_SIZE], index] = self.add(header.name)
                headers[[field.CONTENT_START, field.CONTENT_SIZE], index] = self.add(header.content)
                headers[field.KINDS, index] = header.kinds
        return headers, header_start
