"""Rows of an export as Kafka's batches, with the offsets, times and kinds of time that they had."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.log.header import (
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    Magic,
    rebuilt_header,
    walk,
)
from penstock.pipeline.sink.rows import rows_of
from penstock.records import field
from penstock.records.batch_headers import restate_times
from penstock.records.columns import Columns
from penstock.records.headers import reserved
from penstock.records.headers.escapes import escape
from penstock.records.kafka.compression import compress_kafka
from penstock.records.kafka.encode import encode_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.records.columns import Mask, Numbers

BATCH_BYTES: Final = 1 << 20
"""Bytes of a batch before it is compressed, unless one record has more."""

LONGEST_SPAN: Final = (1 << 31) - 1
"""Offsets that one batch can span."""


def packed(rows: pa.RecordBatch, codec: int) -> Iterator[memoryview]:
    """Yield rows as Kafka's batches with their offsets, times and kinds of time."""
    columns = escape(_columns(rows), Magic.KAFKA)  # microseconds, of which Kafka has none
    restate_times(columns.batches, columns.records)
    encoded = encode_kafka(columns)
    for position, header in walk(encoded):
        batch = encoded[position : position + header.size]
        if codec:
            body = compress_kafka(codec, batch[HEADER_SIZE:])
            head = rebuilt_header(header._replace(attributes=header.attributes | codec), body)
            batch = memoryview(head + body)
        yield batch


def _columns(rows: pa.RecordBatch) -> Columns:
    timed = rows.column("timestamp").cast(pa.int64()).fill_null(-1)
    named = {name: rows.column(name) for name in ("key", "value", "headers")}
    named["timestamp"] = timed.cast(pa.timestamp("us"))
    tables = rows_of(pa.RecordBatch.from_pydict(named), 0)
    offsets, types = (rows.column(name).to_numpy() for name in ("offset", "timestampType"))
    tables.records[field.OFFSET] = offsets
    times = timed.to_numpy()
    changes = (np.diff(types) != 0) | ((types[1:] == 1) & (np.diff(times) != 0))
    changes |= _leaves_entry(rows.column("headers"), times)
    edges = _edges(offsets, changes, tables.bounds)
    batches = np.zeros((field.BATCH_FIELDS, len(edges) - 1), np.int64)
    batches[field.MAGIC] = Magic.KAFKA
    batches[field.FIRST_RECORD] = edges[:-1]
    batches[field.RECORDS] = batches[field.COUNT] = np.diff(edges)
    batches[field.BASE_OFFSET] = offsets[edges[:-1]]
    batches[field.LAST_DELTA] = offsets[edges[1:] - 1] - offsets[edges[:-1]]
    batches[field.ATTRIBUTES] = np.where(types[edges[:-1]] == 1, ATTRIBUTE_LOG_APPEND_TIME, 0)
    return Columns(
        tables.data,
        tables.header_data,
        tables.records,
        tables.headers,
        tables.header_start,
        batches,
    )


def _edges(offsets: Numbers, changes: Mask, bounds: Numbers) -> Numbers:
    """Return where batches begin, and at last the number of rows.

    They begin at changes, and have no more bytes and offsets than they may.
    """
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(offsets)]
    before = np.concatenate(([0], np.cumsum(bounds)))
    edges = []
    for first, end in pairwise(firsts):
        start = first
        while start < end:
            edges.append(start)
            fitting = int(np.searchsorted(before, before[start] + BATCH_BYTES, side="right")) - 1
            near = int(np.searchsorted(offsets, offsets[start] + LONGEST_SPAN))
            start = min(max(fitting, start + 1), near, end)
    return np.array([*edges, len(offsets)], np.int64)


def _leaves_entry(headers: pa.ListArray, times: Numbers) -> Mask:
    """Return of each row but the first whether it can't be of one Pulsar entry with that before.

    An entry has one producer and one time of publishing: where both are the same, Pulsar's clients
    get them back.
    """
    named = pc.list_flatten(headers)
    row_of = pc.list_parent_indices(headers).to_numpy()
    producers, published = (
        _numbered(named, row_of, len(times), name.decode())
        for name in (reserved.PULSAR_PRODUCER, reserved.PULSAR_PUBLISH_TIME)
    )
    # A message without a time of its own has that of its publishing.
    published = np.where(published < 0, times, published)
    is_pulsars = producers >= 0
    differs = (np.diff(producers) != 0) | (np.diff(published) != 0)
    leaves: Mask = (is_pulsars[1:] | is_pulsars[:-1]) & differs
    return leaves


def _numbered(named: pa.StructArray, row_of: Numbers, count: int, name: str) -> Numbers:
    """Return a number for the value of this header of each row, -1 where there is none."""
    numbers = np.full(count, -1, np.int64)
    there = pc.equal(named.field("key"), name)
    values = pc.dictionary_encode(named.field("value").filter(there)).indices
    numbers[row_of[there.to_numpy(zero_copy_only=False)]] = values.fill_null(-1).to_numpy()
    return numbers
