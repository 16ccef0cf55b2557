"""Rows of Arrow as the tables that records are encoded from (`penstock.records.field`).

Nothing is copied but bytes, and those once: each column's go into one buffer, and the tables say
where each key, value and header lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock import wall_clock
from penstock.pipeline.sink.errors import SinkError
from penstock.records import field
from penstock.records.columns import as_bytes

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Numbers

RECORD_OVERHEAD: Final = 5 + 1 + 10 + 4 * 5
"""The most that a record takes beside its key, value and headers: what precedes each of them."""
HEADER_OVERHEAD: Final = 2 * 5


class Fields(NamedTuple):
    """A column of strings: their bytes, and where in those each one is. A size of -1 is null."""

    data: Bytes
    starts: Numbers
    sizes: Numbers


@dataclass(frozen=True)
class Rows:
    """Some rows in the tables that encoders take."""

    keys: Fields
    data: Bytes
    header_data: Bytes
    records: Numbers
    headers: Numbers
    header_start: Numbers
    written_at: int
    """The time of rows that have none of their own, in microseconds."""

    @property
    def bounds(self) -> Numbers:
        """The most bytes that each row can take in a batch that is not compressed."""
        sizes = np.maximum(self.records[[field.KEY_SIZE, field.VALUE_SIZE]], 0).sum(axis=0)
        sizes += RECORD_OVERHEAD
        if self.headers.shape[1]:
            parts = self.headers[[field.NAME_SIZE, field.CONTENT_SIZE]]
            each = np.maximum(parts, 0).sum(axis=0) + HEADER_OVERHEAD
            total = np.concatenate(([0], np.cumsum(each)))
            sizes += np.diff(total[self.header_start])
        result: Numbers = sizes
        return result

    def in_order(self, order: Numbers) -> Rows:
        """Return the same rows in another order."""
        records = np.take(self.records, order, axis=1)
        if not self.headers.shape[1]:
            return replace(self, records=records)
        counts = np.diff(self.header_start)[order]
        places = _ranges(self.header_start[:-1][order], counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        headers = np.take(self.headers, places, axis=1)
        return replace(self, records=records, headers=headers, header_start=starts)


def rows_of(batch: pa.RecordBatch, first_row: int) -> Rows:
    """Return the rows of a batch that has the columns of `schema`; `first_row` is for errors.

    Rows without a time get the time of day. Raises SinkError.
    """
    count = batch.num_rows
    keys = fields_of(_column(batch, "key"), count)
    values = fields_of(_column(batch, "value"), count)
    records = np.zeros((field.RECORD_FIELDS, count), np.int64)
    now = wall_clock.now_ms() * 1000
    records[field.TIMESTAMP] = _times(_column(batch, "timestamp"), count, now)
    records[field.KEY_START], records[field.KEY_SIZE] = keys.starts, keys.sizes
    records[field.VALUE_START] = values.starts + len(keys.data)
    records[field.VALUE_SIZE] = values.sizes
    header_data, headers, starts = _headers(_column(batch, "headers"), count, first_row)
    data = np.concatenate([keys.data, values.data])
    return Rows(keys, data, header_data, records, headers, starts, now)


def fields_of(array: pa.Array | None, count: int) -> Fields:
    """Return where each string or bytes of an array lies; all null where there is no array."""
    if array is None:
        nothing = np.zeros(count, np.int64)
        return Fields(np.empty(0, np.uint8), nothing, nothing - 1)
    if pa.types.is_binary_view(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.large_binary())
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, edges_buffer, data_buffer = array.buffers()
    edges = np.frombuffer(edges_buffer, np.int64 if wide else np.int32) if edges_buffer else ZERO
    edges = edges[array.offset : array.offset + count + 1].astype(np.int64)
    data = as_bytes(data_buffer)[edges[0] : edges[-1]] if data_buffer else np.empty(0, np.uint8)
    starts = edges[:-1] - edges[0]
    sizes = np.diff(edges)
    if array.null_count:
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return Fields(data, starts, sizes)


ZERO: Final = np.zeros(1, np.int64)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    index = batch.schema.get_field_index(name)
    return batch.column(index) if index >= 0 else None


def _times(array: pa.Array | None, count: int, now: int) -> Numbers:
    if array is None:
        return np.full(count, now, np.int64)
    times = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).fill_null(now)
    microseconds: Numbers = times.to_numpy()
    return microseconds


def _headers(array: pa.Array | None, count: int, first_row: int) -> tuple[Bytes, Numbers, Numbers]:
    """Return the bytes of all headers, their table, and the first one of each row."""
    nothing = np.zeros((field.HEADER_FIELDS, 0), np.int64)
    if array is None:
        return np.empty(0, np.uint8), nothing, np.zeros(count + 1, np.int64)
    edges = array.offsets.to_numpy().astype(np.int64)
    counts = np.diff(edges)
    counts[array.is_null().to_numpy(zero_copy_only=False)] = 0
    starts = np.concatenate(([0], np.cumsum(counts)))
    if not starts[-1]:
        return np.empty(0, np.uint8), nothing, starts
    pairs = array.values.take(pa.array(_ranges(edges[:-1], counts)))
    names, contents = (fields_of(each, len(pairs)) for each in pairs.flatten())
    if (names.sizes < 0).any():
        row = int(np.searchsorted(starts, np.argmax(names.sizes < 0), side="right")) - 1
        raise SinkError(f"row {first_row + row}: a header in column headers has no key")
    table = np.zeros((field.HEADER_FIELDS, len(pairs)), np.int64)
    table[field.NAME_START], table[field.NAME_SIZE] = names.starts, names.sizes
    table[field.CONTENT_START] = contents.starts + len(names.data)
    table[field.CONTENT_SIZE] = contents.sizes
    return np.concatenate([names.data, contents.data]), table, starts


def _ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the numbers from each start on, so many of each, one behind the other."""
    before = np.cumsum(counts) - counts
    places: Numbers = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return places
