"""Columns, written as Kafka's records of magic 2 (KIP-98)."""

from __future__ import annotations

import numpy as np

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.batch_headers import Encoded, write_batch_headers
from penstock.records.columns import Columns
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersIn, NumbersOut, TableIn
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, varint_size, write_varint, zigzag
from penstock.records.kernels.times import milliseconds


def encode_kafka(columns: Columns) -> memoryview:
    """Return the same batches with Kafka bodies, uncompressed, one behind the other.

    Header names must be UTF-8 by now and times whole milliseconds: what Kafka can't express has
    been put into headers by then.
    """
    sizes = np.empty(len(columns), np.int64)
    bodies = np.empty(columns.batches.shape[1], np.int64)
    tables = (columns.records, columns.headers, columns.header_start)
    measure_kafka(columns.batches, *tables, sizes, bodies)
    encoded = Encoded.allocate(columns.batches, bodies)
    data = (columns.data, columns.header_data)
    write_kafka(*data, columns.batches, *tables, sizes, encoded.body_starts, encoded.out)
    return write_batch_headers(encoded, Magic.KAFKA, columns.batches)


@helper
def _span_size(size: int) -> int:
    return varint_size(zigzag(size)) + max(size, 0)


@helper
def _write_span(out: BytesOut, position: int, data: BytesIn, start: int, size: int) -> int:
    position = write_varint(out, position, zigzag(size))
    if size > 0:
        copy_bytes(out, position, data, start, size)
        position += size
    return position


@kernel
def measure_kafka(
    batches: TableIn,
    records: TableIn,
    headers: TableIn,
    header_start: NumbersIn,
    sizes: NumbersOut,
    bodies: NumbersOut,
) -> None:
    """Fill in the size of each record, without its length, and of each body."""
    for batch in range(batches.shape[1]):
        total = 0
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            time = (
                milliseconds(records[field.TIMESTAMP, row]) - batches[field.BASE_TIMESTAMP, batch]
            )
            size = 1 + varint_size(zigzag(time))
            size += varint_size(
                zigzag(records[field.OFFSET, row] - batches[field.BASE_OFFSET, batch])
            )
            size += _span_size(records[field.KEY_SIZE, row]) + _span_size(
                records[field.VALUE_SIZE, row]
            )
            size += varint_size(zigzag(header_start[row + 1] - header_start[row]))
            for header in range(header_start[row], header_start[row + 1]):
                size += _span_size(headers[field.NAME_SIZE, header])
                size += _span_size(headers[field.CONTENT_SIZE, header])
            sizes[row] = size
            total += varint_size(zigzag(size)) + size
        bodies[batch] = total


@helper
def _write_record(
    data: BytesIn, header_data: BytesIn, records: TableIn, headers: TableIn,
    header_start: NumbersIn, row: int, out: BytesOut, position: int,
) -> int:  # fmt: skip
    """Write what follows the two deltas of a record."""
    position = _write_span(
        out, position, data, records[field.KEY_START, row], records[field.KEY_SIZE, row]
    )
    position = _write_span(
        out, position, data, records[field.VALUE_START, row], records[field.VALUE_SIZE, row]
    )
    first = header_start[row]
    last = header_start[row + 1]
    position = write_varint(out, position, zigzag(last - first))
    for header in range(first, last):
        start = headers[field.NAME_START, header]
        position = _write_span(out, position, header_data, start, headers[field.NAME_SIZE, header])
        start = headers[field.CONTENT_START, header]
        position = _write_span(
            out, position, header_data, start, headers[field.CONTENT_SIZE, header]
        )
    return position


@kernel
def write_kafka(
    data: BytesIn, header_data: BytesIn, batches: TableIn, records: TableIn, headers: TableIn,
    header_start: NumbersIn, sizes: NumbersIn, body_starts: NumbersIn, out: BytesOut,
) -> int:  # fmt: skip
    """Write every body at its place; returns the position behind the last."""
    position = 0
    for batch in range(batches.shape[1]):
        position = body_starts[batch]
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            position = write_varint(out, position, zigzag(sizes[row]))
            out[position] = 0
            time = (
                milliseconds(records[field.TIMESTAMP, row]) - batches[field.BASE_TIMESTAMP, batch]
            )
            position = write_varint(out, position + 1, zigzag(time))
            delta = records[field.OFFSET, row] - batches[field.BASE_OFFSET, batch]
            position = write_varint(out, position, zigzag(delta))
            position = _write_record(
                data, header_data, records, headers, header_start, row, out, position
            )
    return position
