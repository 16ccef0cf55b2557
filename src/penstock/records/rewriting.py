"""Records whose headers are rewritten one by one: the few that hold what an encoding can't say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from penstock.records.additions import Arena
from penstock.records.columns import (
    CONTENT_SIZE,
    CONTENT_START,
    HEADER_FIELDS,
    KEY_SIZE,
    KEY_START,
    KINDS,
    KINDS_OF_BYTES,
    NAME_SIZE,
    NAME_START,
    TIMESTAMP,
    Bytes,
    Columns,
    Mask,
    Numbers,
)
from penstock.records.text import mark_prefix


class Header(NamedTuple):
    """One header as Python knows it; `kinds` as in the table of headers."""

    name: bytes
    content: bytes | None
    kinds: int = KINDS_OF_BYTES


def marked(columns: Columns, prefix: bytes) -> Mask:
    """Return which headers have a name that begins with `prefix`."""
    mask = np.zeros(columns.headers.shape[1], np.bool_)
    mark_prefix(columns.data, columns.headers, np.frombuffer(prefix, np.uint8), mask)
    return mask


def rows_of(columns: Columns, headers: Mask) -> list[int]:
    """Return the records that have one of these headers, in order."""
    if not headers.any():
        return []
    rows: list[int] = np.unique(columns.header_rows[headers]).tolist()
    return rows


def read_headers(columns: Columns, row: int) -> list[Header]:
    """Return the headers of one record."""
    return [
        Header(columns.name(index), columns.content(index), int(columns.headers[KINDS, index]))
        for index in range(columns.header_start[row], columns.header_start[row + 1])
    ]


@dataclass(slots=True)
class Rewriting:
    """Collects new headers, keys and times of some records, and then makes columns of them."""

    columns: Columns
    arena: Arena = field(init=False)
    _headers: dict[int, list[Header]] = field(default_factory=dict)
    _keys: dict[int, bytes | None] = field(default_factory=dict)
    _times: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arena = Arena.behind(self.columns.data)

    def set_headers(self, row: int, headers: list[Header]) -> None:
        self._headers[row] = headers

    def set_key(self, row: int, key: bytes | None) -> None:
        self._keys[row] = key

    def set_time(self, row: int, microseconds: int) -> None:
        self._times[row] = microseconds

    def add(self, content: bytes | None) -> tuple[int, int]:
        """Keep some bytes; returns the start and the size that a table says of them."""
        if content is None:
            return 0, -1
        return self.arena.add(_array(content)), len(content)

    def apply(self) -> Columns:
        """Return the columns as they were asked for; those that were given are spent."""
        columns = self.columns
        for row, time in self._times.items():
            columns.records[TIMESTAMP, row] = time
        for row, key in self._keys.items():
            columns.records[[KEY_START, KEY_SIZE], row] = self.add(key)
        headers, header_start = self._tables()
        data = self.arena.join()
        return Columns(data, columns.records, headers, header_start, columns.batches)

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
        headers = np.empty((HEADER_FIELDS, int(header_start[-1])), np.int64)
        moved = np.repeat(header_start[:-1] - columns.header_start[:-1], old)
        places = (np.arange(len(kept)) + moved)[kept]
        headers[:, places] = columns.headers[:, kept]
        for row, replaced in self._headers.items():
            for index, header in enumerate(replaced, int(header_start[row])):
                headers[[NAME_START, NAME_SIZE], index] = self.add(header.name)
                headers[[CONTENT_START, CONTENT_SIZE], index] = self.add(header.content)
                headers[KINDS, index] = header.kinds
        return headers, header_start


def _array(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)
