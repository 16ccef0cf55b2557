"""Avro as typed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.pipeline.values.avro_schema import Avro, arrow_of
from penstock.pipeline.values.avro_steps import Steps
from penstock.pipeline.values.cells import Cells
from penstock.pipeline.values.decoding import Decoded, Values, joined, pieces
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.shape import shape_of
from penstock.records.values.avro import STATES, read_avro

if TYPE_CHECKING:
    import pyarrow as pa


class AvroDecoder:
    """See `penstock.pipeline.values.decoding.Decoder`; of values that one schema wrote.

    Raises SchemaError where the reader's schema can't read them.
    """

    def __init__(self, writer: Avro, reader: Avro) -> None:
        self._struct = record_type(reader)
        self._shape = shape_of(self._struct)
        self._steps = Steps(writer, reader, self._shape)
        self._left = np.zeros(STATES, np.int64)

    def decode(self, values: Values) -> Decoded:
        parts = [self._piece(piece) for piece in pieces(values, self._shape)]
        return joined(parts, self._struct)

    def _piece(self, values: Values) -> Decoded:
        data, spans = values
        cells = Cells(self._shape, spans.shape[1], int(spans[1].sum()))
        read_avro(
            data,
            spans,
            self._steps.table,
            self._shape.table,
            cells.columns,
            cells.cells,
            cells.valid,
            self._left,
            cells.faults,
        )
        rows, late = cells.arrays(data, self._steps.makers)
        return Decoded(rows, sorted([*cells.found(), *late]))


def record_type(avro: Avro) -> pa.StructType:
    """Return the columns of a schema; raises SchemaError where it is of no record."""
    record = avro.branches[0] if len(avro.branches) == 1 else avro
    if record.kind != "record":
        raise SchemaError(
            f"the Avro schema is of type {avro.kind}: columns need one of type record"
        )
    return arrow_of(record)
