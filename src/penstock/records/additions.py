"""Headers that are added to the columns of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.records.arena import Arena, header_arena
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
from penstock.records.kernels.jit import NOTHING, NUMBERS, NUMBERS_INPUT, TABLE, TABLE_INPUT, kernel
from penstock.records.kernels.text import DECIMAL_SIZE, write_decimals


@dataclass(slots=True)
class Additions:
    """Headers to add behind those that records have, in the order of the calls.

    An addition is a start and a size for every record; one of a negative size gets no header.
    """

    columns: Columns
    arena: Arena = field(init=False)
    _names: list[tuple[int, int]] = field(default_factory=list)
    _spans: list[Numbers] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arena = header_arena(self.columns)

    def add(self, name: bytes, starts: Numbers, sizes: Numbers) -> None:
        """Add what lies at these places of the arena."""
        self._names.append((self.arena.add_bytes(name), len(name)))
        self._spans += [starts, sizes]

    def add_text(self, name: bytes, text: Bytes, starts: Numbers, sizes: Numbers) -> None:
        """Add parts of `text`."""
        starts += self.arena.add(text)
        self.add(name, starts, sizes)

    def add_decimals(self, name: bytes, chosen: Mask, numbers: Numbers) -> None:
        """Give every chosen record its number as a header."""
        starts, sizes = np.empty((2, len(numbers)), np.int64)
        text = np.empty(int(np.count_nonzero(chosen)) * DECIMAL_SIZE, np.uint8)
        if len(text):
            write_decimals(numbers, chosen, starts, sizes, text)
            self.add_text(name, text, starts, sizes)

    def apply(self) -> Columns:
        """Return the columns with the headers in place."""
        columns = self.columns
        if not self._names:
            return columns
        spans = np.array(self._spans)
        added = int(np.count_nonzero(spans[1::2] >= 0))
        headers = np.empty((HEADER_FIELDS, columns.headers.shape[1] + added), np.int64)
        header_start = np.empty(len(columns) + 1, np.int64)
        names = np.array(self._names)
        insert_headers(columns.headers, columns.header_start, names, spans, headers, header_start)
        columns.headers, columns.header_start = headers, header_start
        columns.header_data = self.arena.join()
        return columns


@kernel(NOTHING, TABLE_INPUT, NUMBERS_INPUT, TABLE_INPUT, TABLE_INPUT, TABLE, NUMBERS)
def insert_headers(
    headers: Any, header_start: Any, names: Any, spans: Any, out: Any, out_start: Any
) -> None:
    """Write the headers of each record and behind them those that are added."""
    place = 0
    for row in range(len(header_start) - 1):
        out_start[row] = place
        for header in range(header_start[row], header_start[row + 1]):
            for column in range(HEADER_FIELDS):
                out[column, place] = headers[column, header]
            place += 1
        for addition in range(len(names)):
            size = spans[2 * addition + 1, row]
            if size >= 0:
                out[NAME_START, place] = names[addition, 0]
                out[NAME_SIZE, place] = names[addition, 1]
                out[CONTENT_START, place] = spans[2 * addition, row]
                out[CONTENT_SIZE, place] = size
                out[KINDS, place] = KINDS_OF_TEXT
                place += 1
    out_start[len(header_start) - 1] = place
