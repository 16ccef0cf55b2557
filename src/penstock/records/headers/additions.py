"""Headers that are added to the columns of records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from penstock.records import field, header_kinds
from penstock.records.arena import Arena, checked_size, header_arena
from penstock.records.columns import Bytes, Columns, Mask, Numbers
from penstock.records.kernels.arguments import NumbersIn, NumbersOut, TableIn, TableOut
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.text import DECIMAL_SIZE, write_decimals


@dataclass(slots=True)
class Additions:
    """Headers to add behind those that records have, in the order of the calls.

    An addition is a start and a size for every record; one of a negative size gets no header.
    """

    columns: Columns
    arena: Arena = dataclasses.field(init=False)
    _names: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    _spans: list[Numbers] = dataclasses.field(default_factory=list)

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
        """Return the columns with the headers in place.

        Raises OverLimitError where what all records are given together is too much, although the
        bytes of each addition may be there only once.
        """
        columns = self.columns
        if not self._names:
            return columns
        spans = np.array(self._spans)
        checked_size(int(np.maximum(spans[1::2], 0).sum()))
        added = int(np.count_nonzero(spans[1::2] >= 0))
        headers = np.empty((field.HEADER_FIELDS, columns.headers.shape[1] + added), np.int64)
        header_start = np.empty(len(columns) + 1, np.int64)
        names = np.array(self._names)
        insert_headers(columns.headers, columns.header_start, names, spans, headers, header_start)
        columns.headers, columns.header_start = headers, header_start
        columns.header_data = self.arena.join()
        return columns


@kernel
def insert_headers(
    headers: TableIn,
    header_start: NumbersIn,
    names: TableIn,
    spans: TableIn,
    out: TableOut,
    out_start: NumbersOut,
) -> None:
    """Write the headers of each record and behind them those that are added."""
    place = 0
    for row in range(len(header_start) - 1):
        out_start[row] = place
        for header in range(header_start[row], header_start[row + 1]):
            for each in range(field.HEADER_FIELDS):
                out[each, place] = headers[each, header]
            place += 1
        for addition in range(len(names)):
            size = spans[2 * addition + 1, row]
            if size >= 0:
                out[field.NAME_START, place] = names[addition, 0]
                out[field.NAME_SIZE, place] = names[addition, 1]
                out[field.CONTENT_START, place] = spans[2 * addition, row]
                out[field.CONTENT_SIZE, place] = size
                out[field.KINDS, place] = header_kinds.OF_TEXT
                place += 1
    out_start[len(header_start) - 1] = place
