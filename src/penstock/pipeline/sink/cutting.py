"""Rows of Arrow in the order in which they are written, cut into what becomes one batch each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import HEADER_SIZE
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.rows import rows_of
from penstock.records import field

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.pipeline.sink.placing import Placed, Placing
    from penstock.pipeline.sink.rows import Rows
    from penstock.pipeline.sink.topics import Topic
    from penstock.records.columns import Numbers

PIECE_BYTES: Final = 8 << 20
"""Arrow bytes of rows that are encoded at once, and become one or a few requests."""

_PIECE_ROWS: Final = PIECE_BYTES
"""No piece has more rows."""

_LARGEST: Final = 64 << 20
"""Bytes of a row above which it is not tried how small it gets."""


class Cut(NamedTuple):
    """Rows, in the order in which they are written, that become one batch."""

    topic: Topic
    partition: int
    first: int
    end: int


class Piece(NamedTuple):
    """Rows that are encoded at once."""

    rows: Rows
    cuts: list[Cut]
    table: Numbers
    """The batches as a table of `field`s; their times are not known yet."""
    numbers: Numbers
    """Of each row which one of its task it is."""

    def too_large(self, cut: Cut, size: int) -> SinkError:
        row = self.numbers[cut.first]
        return SinkError(
            f"row {row}, for {cut.topic.name}-{cut.partition}: {size} bytes are more than the "
            f"topic takes: {cut.topic.limit} is {cut.topic.max_batch_bytes}"
        )


class Cutter:
    """One task's rows on their way to being encoded."""

    def __init__(self, placing: Placing, batch_bytes: int, batch_rows: int = _PIECE_ROWS) -> None:
        self._placing = placing
        self._most = batch_bytes, batch_rows
        self._rows = 0

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Piece]:
        """Yield the rows. Raises SinkError."""
        pieces = max(1, -(-rows.nbytes // PIECE_BYTES))
        size = max(1, -(-rows.num_rows // pieces))
        for first in range(0, rows.num_rows, size):
            yield self._piece(rows.slice(first, size))

    def _piece(self, arrow: pa.RecordBatch) -> Piece:
        rows = rows_of(arrow, self._rows)
        placed = self._placing.place(arrow, rows.keys, self._rows)
        order = np.lexsort((placed.partitions, placed.topic_of))
        rows = rows.in_order(order)
        bounds = rows.bounds
        cuts = list(_cuts(placed, order, bounds, *self._most))
        table = _table(cuts)
        counts, firsts = table[field.RECORDS], table[field.FIRST_RECORD]
        rows.records[field.OFFSET] = np.arange(len(rows.records[0])) - np.repeat(firsts, counts)
        piece = Piece(rows, cuts, table, self._rows + order)
        self._rows += arrow.num_rows
        for cut in cuts:
            # Before memory is taken for what it becomes.
            size = int(bounds[cut.first])
            if size > max(cut.topic.max_batch_bytes, _LARGEST):
                raise piece.too_large(cut, size)
        return piece


def _cuts(
    placed: Placed, order: Numbers, bounds: Numbers, batch_bytes: int, batch_rows: int
) -> Iterator[Cut]:
    """Yield runs of rows of one partition, as many as a batch may have, one at the least."""
    topic_of, partitions = placed.topic_of[order], placed.partitions[order]
    changes = np.flatnonzero(np.diff(topic_of) | np.diff(partitions)) + 1
    before = np.concatenate(([0], np.cumsum(bounds)))
    for first, end in zip([0, *changes.tolist()], [*changes.tolist(), len(order)], strict=True):
        topic, partition = placed.topics[topic_of[first]], int(partitions[first])
        most = min(batch_bytes, topic.max_batch_bytes) - HEADER_SIZE
        start = first
        while start < end:
            fitting = int(np.searchsorted(before, before[start] + most, side="right")) - 1
            stop = min(max(fitting, start + 1), start + batch_rows, end)
            yield Cut(topic, partition, start, stop)
            start = stop


def _table(cuts: list[Cut]) -> Numbers:
    """Return the batches as a table of `field`s; their times are not known yet."""
    table = np.zeros((field.BATCH_FIELDS, len(cuts)), np.int64)
    firsts = np.array([cut.first for cut in cuts], np.int64)
    counts = np.array([cut.end - cut.first for cut in cuts], np.int64)
    table[field.FIRST_RECORD] = firsts
    table[field.RECORDS] = table[field.COUNT] = counts
    return table
