"""Headers that are added to the columns of records, and bytes that are made up for them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.records.columns import (
    CONTENT_SIZE,
    CONTENT_START,
    HEADER_FIELDS,
    KINDS,
    KINDS_OF_TEXT,
    NAME_SIZE,
    NAME_START,
    Bytes,
    Columns,
    Mask,
    Numbers,
)
from penstock.records.text import DECIMAL_SIZE, write_decimals


@dataclass(slots=True)
class Arena:
    """A buffer that grows behind one that exists: each part's place is known when it is added."""

    parts: list[Bytes]
    size: int

    @classmethod
    def behind(cls, data: Bytes) -> Arena:
        return cls([data], len(data))

    def add(self, part: Bytes) -> int:
        """Add a part; returns its position."""
        position = self.size
        self.parts.append(part)
        self.size += len(part)
        return position

    def join(self) -> Bytes:
        """Return all parts as one buffer, which is the first where there is no other."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


@dataclass(slots=True)
class _Addition:
    rows: Numbers
    name_start: int
    name_size: int
    starts: Numbers
    sizes: Numbers


@dataclass(slots=True)
class Additions:
    """Headers to add behind those that records have, in the order of the calls."""

    columns: Columns
    arena: Arena = field(init=False)
    _pending: list[_Addition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arena = Arena.behind(self.columns.data)

    def add(self, name: bytes, chosen: Mask, starts: Numbers, sizes: Numbers) -> None:
        """Give every chosen record a header; starts and sizes are those of all records."""
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return
        at = self.arena.add(np.frombuffer(name, np.uint8))
        self._pending.append(_Addition(rows, at, len(name), starts[rows], sizes[rows]))

    def add_decimals(self, name: bytes, chosen: Mask, numbers: Numbers) -> None:
        """Give every chosen record its number as a header."""
        if not chosen.any():
            return
        sizes = np.empty(len(numbers), np.int64)
        text = np.empty(len(numbers) * DECIMAL_SIZE, np.uint8)
        write_decimals(numbers, sizes, text)
        starts = self.arena.add(text) + np.arange(len(numbers)) * DECIMAL_SIZE
        self.add(name, chosen, starts, sizes)

    def apply(self) -> Columns:
        """Return the columns with the headers in place."""
        columns = self.columns
        if not self._pending:
            return columns
        counts = np.diff(columns.header_start)
        used = counts.copy()
        for addition in self._pending:
            counts[addition.rows] += 1
        header_start = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(counts, out=header_start[1:])
        headers = np.empty((HEADER_FIELDS, int(header_start[-1])), np.int64)
        moved = header_start[:-1] - columns.header_start[:-1]
        if columns.headers.shape[1]:
            places = np.arange(columns.headers.shape[1]) + np.repeat(moved, used)
            headers[:, places] = columns.headers
        for addition in self._pending:
            places = header_start[addition.rows] + used[addition.rows]
            used[addition.rows] += 1
            headers[NAME_START, places] = addition.name_start
            headers[NAME_SIZE, places] = addition.name_size
            headers[CONTENT_START, places] = addition.starts
            headers[CONTENT_SIZE, places] = addition.sizes
            headers[KINDS, places] = KINDS_OF_TEXT
        data = self.arena.join()
        return Columns(data, columns.records, headers, header_start, columns.batches)
