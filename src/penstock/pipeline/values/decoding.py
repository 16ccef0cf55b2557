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


NULL_SPAN: Final = np.full((2, 1), -1, np.int64)
"""Where a null lies, and its size."""


class Values(NamedTuple):
    """Where values lie in a buffer."""

    data: Bytes
    spans: Numbers
    """Two rows: where each value starts, and its bytes, below 0 of a null."""

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
    """Reads values of one schema, of which none is null. A bad one costs itself only."""

    def decode(self, values: Values) -> Decoded:
        """Return as many rows as there are values."""


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
