"""The cells that a kernel fills, and the Arrow arrays that are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.records.arrow import gather_spans
from penstock.records.values import fault, node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.pipeline.values.shape import Shape
    from penstock.records.columns import Bytes, Mask, Numbers

CELL_BYTES: Final = 9
"""Of a cell and of its mask."""
_ZONE: Final = r"[T ].*(Z|[+-]\d{2}(:?\d{2})?)$"
_NANOSECONDS: Final = r"(\.\d{6})\d+"


class Fault(NamedTuple):
    """Why a record is not of its schema."""

    row: int
    reason: str


class Cells:
    """Room for the cells of so many records with so many bytes, and what is made of them."""

    def __init__(self, shape: Shape, records: int, size: int) -> None:
        self._shape = shape
        self._records = records
        count = len(shape.nodes)
        # An element takes a byte at least, so a list has no more of them than its record has bytes;
        # memory that is never written to is never taken.
        room = [size + records if each.is_repeated else records for each in shape.nodes]
        self.columns = np.zeros((node.COLUMN_FIELDS, count), np.int64)
        self.columns[node.FIRST, 1:] = np.cumsum(room)[:-1]
        # Of Arrow's pool, whose pages are used again.
        self.cells = np.frombuffer(pa.allocate_buffer(8 * sum(room)), np.int64)
        self.valid = np.frombuffer(pa.allocate_buffer(sum(room)), np.bool_)
        self.faults = np.empty((3, records), np.int64)
        self.faults[0] = 0

    def found(self) -> list[Fault]:
        """Return what the kernel has found to be wrong."""
        rows = np.flatnonzero(self.faults[0])
        return [
            Fault(int(row), self._reason(*self.faults[:, row].tolist())) for row in rows.tolist()
        ]

    def _reason(self, number: int, at: int, place: int) -> str:
        path = self._shape.nodes[place].path if place > 0 else ""
        where = f"{path}: " if path else ""
        return f"{where}{fault.REASONS[number]} (byte {at})"

    def arrays(
        self, data: Bytes, makers: Mapping[int, Maker]
    ) -> tuple[pa.StructArray, list[Fault]]:
        """Return a struct for each record, null where it has a fault, and faults found only here.

        `makers` are the nodes whose cells are not what the shape's types say.
        """
        making = _Making(self, self._shape, data, makers)
        struct = making.array(0)
        if not making.late and not self.faults[0].any():
            return struct, []
        good = np.flatnonzero(self.faults[0] == 0)
        late = [Fault(int(good[row]), reason) for row, reason in making.late]
        places = np.full(self._records, -1, np.int64)
        places[good] = np.arange(len(good))
        for each in late:
            places[each.row] = -1
        return struct.take(pa.array(places, mask=places < 0)), late

    def column(self, place: int) -> tuple[Numbers, Mask]:
        """Return the cells of a node."""
        first, count = self.columns[[node.FIRST, node.COUNT], place].tolist()
        return self.cells[first : first + count], self.valid[first : first + count]


class _Making:
    def __init__(
        self, cells: Cells, shape: Shape, data: Bytes, makers: Mapping[int, Maker]
    ) -> None:
        self._cells = cells
        self._shape = shape
        self._data = data
        self._makers = makers
        self.late: list[tuple[int, str]] = []

    def array(self, place: int) -> pa.Array:
        each = self._shape.nodes[place]
        cells, valid = self._cells.column(place)
        null = None if valid.all() else ~valid
        maker = self._makers.get(place)
        if maker is not None:
            return maker(Column(cells, valid, null, self._data), each.type)
        if each.kind == node.STRUCT:
            children = [self.array(child) for child in each.children]
            if not children:
                return pa.array([{}] * len(cells), each.type, mask=null)
            mask = None if null is None else pa.array(null)
            return pa.StructArray.from_arrays(children, fields=each.type.fields, mask=mask)
        if each.kind in (node.LIST, node.MAP):
            return self._list(place, cells, null)
        return self._leaf(place, Column(cells, valid, null, self._data))

    def _list(self, place: int, cells: Numbers, null: Mask | None) -> pa.Array:
        each = self._shape.nodes[place]
        ends = np.zeros(len(cells) + 1, np.int32)
        ends[1:] = cells
        below = [self.array(child) for child in each.children]
        mask = None if null is None else pa.array(null)
        offsets = pa.array(ends)
        if each.kind == node.MAP:
            return pa.MapArray.from_arrays(offsets, *below, type=each.type, mask=mask)
        return pa.ListArray.from_arrays(offsets, *below, type=each.type, mask=mask)

    def _leaf(self, place: int, column: Column) -> pa.Array:
        each = self._shape.nodes[place]
        if each.kind == node.FLAG:
            return pa.array(column.cells != 0, mask=column.null)
        if each.kind == node.WHOLE:
            return pa.array(column.cells.astype(each.type.to_pandas_dtype()), mask=column.null)
        spans = column.bytes()
        if each.kind == node.TEXT:
            return spans.view(each.type)
        text = spans.view(pa.string())
        convert = _moments if each.kind == node.MOMENT else _cast
        try:
            return convert(text, each.type)
        except pa.ArrowInvalid:
            return self._without_bad(place, text, convert)

    def _without_bad(self, place: int, text: pa.Array, convert: Convert) -> pa.Array:
        """Convert what can be; the records of the rest are late faults."""
        each = self._shape.nodes[place]
        bad = _bad(text, each.type, convert)
        for entry in bad:
            said = text[entry].as_py()[:100]
            self.late.append(
                (self._record(place, entry), f"{each.path}: {said!r} is no {each.type}")
            )
        mask = np.zeros(len(text), np.bool_)
        mask[bad] = True
        return convert(pc.if_else(pa.array(mask), pa.scalar(None, pa.string()), text), each.type)

    def _record(self, place: int, entry: int) -> int:
        parent = self._shape.nodes[place].parent
        while parent >= 0:
            if self._shape.nodes[parent].kind != node.STRUCT:
                ends, _ = self._cells.column(parent)
                entry = int(np.searchsorted(ends, entry, side="right"))
            parent = self._shape.nodes[parent].parent
        return entry


class Column(NamedTuple):
    """The cells of one node."""

    cells: Numbers
    valid: Mask
    null: Mask | None
    """What is not valid; None where all is."""
    data: Bytes

    def bytes(self) -> pa.Array:
        """Return what the cells are spans of."""
        if self.null is not None and self.null.all():
            return pa.nulls(len(self.cells), pa.binary())
        return gather_spans(self.data, self.cells, self.valid, self.null)


if TYPE_CHECKING:
    Maker = Callable[[Column, pa.DataType], pa.Array]
    Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def _cast(text: pa.Array, to: pa.DataType) -> pa.Array:
    return text.cast(to)


def _moments(text: pa.Array, to: pa.DataType) -> pa.Array:
    """Read dates and times of ISO 8601; what names no zone is in UTC. Raises ArrowInvalid."""
    if not types.is_timestamp(to):
        return text.cast(to)
    text = pc.replace_substring_regex(text, _NANOSECONDS, r"\1")
    if to.tz is None:
        return text.cast(to)
    zoned = pc.match_substring_regex(text, _ZONE)
    if pc.all(zoned, min_count=0).as_py():
        return text.cast(to)
    nothing = pa.scalar(None, pa.string())
    aware = pc.if_else(zoned, text, nothing).cast(to)
    naive = pc.if_else(zoned, nothing, text).cast(pa.timestamp(to.unit))
    return pc.coalesce(aware, naive.view(to))


def _bad(text: pa.Array, to: pa.DataType, convert: Convert) -> list[int]:
    """Return the places of all that can't be converted, found by halving."""
    bad: list[int] = []
    left: list[tuple[int, int]] = [(0, len(text))]
    while left:
        start, count = left.pop()
        try:
            convert(text.slice(start, count), to)
        except pa.ArrowInvalid:
            if count == 1:
                bad.append(start)
            else:
                half = count // 2
                left += [(start + half, count - half), (start, half)]
    return bad
