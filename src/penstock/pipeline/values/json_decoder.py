"""JSON as typed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.pipeline.values.cells import Cells
from penstock.pipeline.values.decoding import Decoded, Values, joined, pieces
from penstock.pipeline.values.shape import shape_of
from penstock.records.values.json import STATES, read_json

if TYPE_CHECKING:
    import pyarrow as pa


class JsonDecoder:
    """See `penstock.pipeline.values.decoding.Decoder`."""

    def __init__(self, struct: pa.StructType) -> None:
        self._struct = struct
        self._shape = shape_of(struct)
        self._now = np.zeros(STATES, np.int64)

    def decode(self, values: Values) -> Decoded:
        parts = [self._piece(piece) for piece in pieces(values, self._shape)]
        return joined(parts, self._struct)

    def _piece(self, values: Values) -> Decoded:
        data, spans = values
        size = int(spans[1].sum())
        cells = Cells(self._shape, spans.shape[1], size)
        unescaped = np.empty(size, np.uint8)
        written = read_json(
            data,
            spans,
            self._shape.table,
            self._shape.letters,
            cells.columns,
            cells.cells,
            cells.valid,
            unescaped,
            self._now,
            cells.faults,
        )
        if written:
            data = np.concatenate([data, unescaped[:written]])
        rows, late = cells.arrays(data, {})
        return Decoded(rows, sorted([*cells.found(), *late]))
