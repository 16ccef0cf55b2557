"""Columns, written as Kafka's records of magic 2 (KIP-98)."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.records.columns import (
    BASE_OFFSET,
    BASE_TIMESTAMP,
    CONTENT_SIZE,
    CONTENT_START,
    FIRST_RECORD,
    KEY_SIZE,
    KEY_START,
    NAME_SIZE,
    NAME_START,
    OFFSET,
    RECORDS,
    TIMESTAMP,
    VALUE_SIZE,
    VALUE_START,
    Columns,
)
from penstock.records.frame import Encoded, finish
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NOTHING,
    NUMBERS,
    NUMBERS_INPUT,
    OUTPUT,
    TABLE_INPUT,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import copy_bytes, varint_size, write_varint, zigzag
from penstock.records.scan import KAFKA


def encode_kafka(columns: Columns) -> memoryview:
    """Return the same batches with Kafka bodies, uncompressed, one behind the other.

    Header names must be UTF-8 by now and times whole milliseconds: what Kafka can't say has been
    put into headers by then.
    """
    sizes = np.empty(len(columns), np.int64)
    bodies = np.empty(columns.batches.shape[1], np.int64)
    tables = (columns.records, columns.headers, columns.header_start)
    measure_kafka(columns.batches, *tables, sizes, bodies)
    encoded = Encoded.allocate(columns.batches, bodies)
    data = (columns.data, columns.header_data)
    write_kafka(*data, columns.batches, *tables, sizes, encoded.body_starts, encoded.out)
    return finish(encoded, KAFKA, columns.batches)


@helper
def _milliseconds(microseconds: int) -> Any:
    return microseconds // 1000


@helper
def _span_size(size: int) -> Any:
    return varint_size(zigzag(size)) + max(size, 0)


@helper
def _write_span(out: Any, position: int, data: Any, start: int, size: int) -> Any:
    position = write_varint(out, position, zigzag(size))
    if size > 0:
        copy_bytes(out, position, data, start, size)
        position += size
    return position


@kernel(NOTHING, TABLE_INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, NUMBERS, NUMBERS)
def measure_kafka(
    batches: Any, records: Any, headers: Any, header_start: Any, sizes: Any, bodies: Any
) -> None:
    """Fill in the size of each record, without its length, and of each body."""
    for batch in range(batches.shape[1]):
        total = 0
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            time = _milliseconds(records[TIMESTAMP, row]) - batches[BASE_TIMESTAMP, batch]
            size = 1 + varint_size(zigzag(time))
            size += varint_size(zigzag(records[OFFSET, row] - batches[BASE_OFFSET, batch]))
            size += _span_size(records[KEY_SIZE, row]) + _span_size(records[VALUE_SIZE, row])
            size += varint_size(zigzag(header_start[row + 1] - header_start[row]))
            for header in range(header_start[row], header_start[row + 1]):
                size += _span_size(headers[NAME_SIZE, header])
                size += _span_size(headers[CONTENT_SIZE, header])
            sizes[row] = size
            total += varint_size(zigzag(size)) + size
        bodies[batch] = total


@helper
def _write_record(
    data: Any, header_data: Any, records: Any, headers: Any, header_start: Any, row: int, out: Any,
    position: int,
) -> Any:  # fmt: skip
    """Write what follows the two deltas of a record."""
    position = _write_span(out, position, data, records[KEY_START, row], records[KEY_SIZE, row])
    position = _write_span(out, position, data, records[VALUE_START, row], records[VALUE_SIZE, row])
    first = header_start[row]
    last = header_start[row + 1]
    position = write_varint(out, position, zigzag(last - first))
    for header in range(first, last):
        start = headers[NAME_START, header]
        position = _write_span(out, position, header_data, start, headers[NAME_SIZE, header])
        start = headers[CONTENT_START, header]
        position = _write_span(out, position, header_data, start, headers[CONTENT_SIZE, header])
    return position


@kernel(
    INTEGER, INPUT, INPUT, TABLE_INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, NUMBERS_INPUT,
    NUMBERS_INPUT, OUTPUT,
)  # fmt: skip
def write_kafka(
    data: Any, header_data: Any, batches: Any, records: Any, headers: Any, header_start: Any,
    sizes: Any, body_starts: Any, out: Any,
) -> Any:  # fmt: skip
    """Write every body at its place; returns the position behind the last."""
    position = 0
    for batch in range(batches.shape[1]):
        position = body_starts[batch]
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            position = write_varint(out, position, zigzag(sizes[row]))
            out[position] = 0
            time = _milliseconds(records[TIMESTAMP, row]) - batches[BASE_TIMESTAMP, batch]
            position = write_varint(out, position + 1, zigzag(time))
            delta = records[OFFSET, row] - batches[BASE_OFFSET, batch]
            position = write_varint(out, position, zigzag(delta))
            position = _write_record(
                data, header_data, records, headers, header_start, row, out, position
            )
    return position
