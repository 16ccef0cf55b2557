"""Rows of Arrow as Iggy's batches, with what docs/interop.md says of keys and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.pipeline.sink.cutting import Cutter
from penstock.pipeline.sink.errors import SinkError
from penstock.records import field
from penstock.records.columns import Columns
from penstock.records.headers.escapes import escape
from penstock.records.iggy.batch import stamp_iggy_batch
from penstock.records.iggy.encode import encode_iggy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.pipeline.sink.cutting import Piece
    from penstock.pipeline.sink.placing import Placing


class IggyBatch(NamedTuple):
    """One batch, and where it goes."""

    topic: str
    partition: int
    messages: int
    batch: memoryview


class IggyPacker:
    """One task's rows on their way to a server. Their ids are `upper` and the row's number."""

    def __init__(self, placing: Placing, batch_bytes: int, upper: int) -> None:
        self._cutter = Cutter(placing, batch_bytes)
        self._upper = upper

    def batches(self, rows: pa.RecordBatch) -> Iterator[IggyBatch]:
        """Yield what is sent at once. Raises SinkError."""
        for piece in self._cutter.pieces(rows):
            yield from self._of_piece(piece)

    def _of_piece(self, piece: Piece) -> Iterator[IggyBatch]:
        empty = piece.rows.records[field.VALUE_SIZE] <= 0
        if empty.any():
            row = int(piece.numbers[empty].min())
            raise SinkError(
                f"row {row}: its value is null or empty, and Iggy takes no such message"
            )
        ids = np.empty((2, len(piece.numbers)), np.int64)
        ids[0], ids[1] = piece.numbers, self._upper
        table = piece.table
        table[field.LAST_DELTA] = table[field.RECORDS] - 1
        rows = piece.rows
        columns = Columns(
            rows.data, rows.header_data, rows.records, rows.headers, rows.header_start, table
        )
        made = encode_iggy(escape(columns, Magic.IGGY), ids)
        cuts = iter(piece.cuts)
        cut = next(cuts)
        left = cut.end - cut.first
        for position, header in walk(made):
            if not left:
                cut = next(cuts)
                left = cut.end - cut.first
            batch = made[position + HEADER_SIZE : position + header.size]
            stamp_iggy_batch(batch, 0, 0, 0)
            # What spans more than 71 minutes becomes several batches.
            left -= header.record_count
            yield IggyBatch(cut.topic.name, cut.partition, header.record_count, batch)
