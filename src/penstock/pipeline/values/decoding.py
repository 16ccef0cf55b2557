"""What all decoders have in common: values in one buffer in, typed rows and faults out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from penstock.pipeline.values.cells import CELL_BYTES, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.pipeline.values.shape import Shape
    from penstock.records.columns import Bytes, Numbers

ROOM_BYTES: Final = 256 << 20
"""Address space for the cells of what is decoded at once, most of which is never written to."""


class Values(NamedTuple):
    """Where values lie in a buffer; none of them is null."""

    data: Bytes
    spans: Numbers
    """Two rows: where each value starts, and its bytes."""

    def chosen(self, rows: Numbers) -> Values:
        """Return these rows only."""
        return Values(self.data, np.ascontiguousarray(self.spans[:, rows]))

    def binary(self) -> pa.Array:
        """Return them as an array of Arrow."""
        from penstock.records.arrow import gather  # noqa: PLC0415

        return gather(self.data, *self.spans)


class Decoded(NamedTuple):
    """A struct for each value, null where it has a fault, and the faults in order."""

    rows: pa.StructArray
    faults: list[Fault]


class Decoder(Protocol):
    """Reads values of one schema. What is wrong with a value costs that value only."""

    def decode(self, values: Values) -> Decoded:
        """Return as many rows as there are values."""


def values_of(array: pa.Array) -> Values:
    """Return the values of a binary array that has no nulls."""
    start, count = array.offset, len(array)
    _, offsets, data = array.buffers()
    if not count:
        return Values(np.zeros(0, np.uint8), np.zeros((2, 0), np.int64))
    edges = np.frombuffer(offsets, np.int32, count + 1, 4 * start)
    first = int(edges[0])
    size = int(edges[-1]) - first
    held = np.frombuffer(data, np.uint8, size, first) if size else np.zeros(0, np.uint8)
    spans = np.empty((2, count), np.int64)
    np.subtract(edges[:-1], first, out=spans[0])
    np.subtract(edges[1:], edges[:-1], out=spans[1])
    return Values(held, spans)


def pieces(values: Values, shape: Shape) -> Iterator[Values]:
    """Cut values so that the cells of each piece fit in ROOM_BYTES, or are those of one value."""
    _, sizes = values.spans
    cells = int(sizes.sum()) * shape.repeated + len(sizes) * len(shape.nodes)
    if cells * CELL_BYTES <= ROOM_BYTES:
        yield values
        return
    costs = CELL_BYTES * (sizes * shape.repeated + len(shape.nodes))
    ends = np.cumsum(costs)
    start, count = 0, len(sizes)
    while start < count:
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + ROOM_BYTES, side="right")))
        yield Values(values.data, np.ascontiguousarray(values.spans[:, start:end]))
        start = end


def joined(parts: list[Decoded], struct: pa.StructType) -> Decoded:
    """Return the parts one behind the other."""
    if len(parts) == 1:
        return parts[0]
    faults: list[Fault] = []
    before = 0
    for rows, found in parts:
        faults += [Fault(before + row, reason) for row, reason in found]
        before += len(rows)
    return Decoded(pa.concat_arrays([pa.array([], struct), *(part.rows for part in parts)]), faults)
