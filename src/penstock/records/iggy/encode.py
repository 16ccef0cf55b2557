"""Columns, written as Iggy's frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.records import reserved
from penstock.records.columns import (
    BASE_OFFSET,
    BATCH_FIELDS,
    CONTENT_SIZE,
    CONTENT_START,
    COUNT,
    FIRST_RECORD,
    KEY_SIZE,
    KEY_START,
    KIND_RAW,
    KINDS,
    KINDS_OF_BYTES,
    KINDS_UNTOLD,
    LAST_DELTA,
    MAX_TIMESTAMP,
    NAME_SIZE,
    NAME_START,
    OFFSET,
    RECORDS,
    TIMESTAMP,
    VALUE_SIZE,
    VALUE_START,
    Columns,
    Numbers,
)
from penstock.records.frame import Encoded, finish, restate_times
from penstock.records.iggy.batch import (
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    BATCH_HEADER_SIZE,
    CHECKSUM_AT,
    COUNT_AT,
    FRAME_HEADERS_AT,
    FRAME_ID_AT,
    FRAME_OFFSET_AT,
    FRAME_PAYLOAD_AT,
    FRAME_SIZE,
    FRAME_TIMESTAMP_AT,
    LENGTH_AT,
    ORIGIN_TIMESTAMP_AT,
    batch_checksum,
)
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NOTHING,
    NUMBERS,
    NUMBERS_INPUT,
    OUTPUT,
    TABLE,
    TABLE_INPUT,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import copy_bytes, store_little
from penstock.records.kernels.xxh3 import xxh3_64
from penstock.records.scan import IGGY

_KEY = reserved.constant(reserved.KEY)
_TOMBSTONE = reserved.constant(reserved.TOMBSTONE)
_KIND_BOOL = 3
_ENTRY = 10
"""Bytes of a user header besides its name and its value."""
_LONGEST_SPAN = (1 << 32) - 1
"""Microseconds between a batch's earliest and latest message: 71 minutes."""


def encode_iggy(columns: Columns, ids: Numbers) -> memoryview:
    """Return the same batches with Iggy bodies, one behind the other.

    `ids` is a table of the low and the high halves of the message ids. A batch whose times lie
    further apart than an Iggy batch can say is split. Names and values of headers are 1 to 255
    bytes by now, keys too, and no time is negative.
    """
    kinds = columns.headers[KINDS]
    kinds[kinds == KINDS_UNTOLD] = KINDS_OF_BYTES
    batches = split_by_time(columns)
    restate_times(batches, columns.records)
    tables = (columns.records, columns.headers, columns.header_start)
    bodies = np.empty(batches.shape[1], np.int64)
    measure_iggy(batches, *tables, bodies)
    encoded = Encoded.allocate(batches, bodies)
    data = (columns.data, columns.header_data)
    write_iggy(*data, batches, *tables, ids, encoded.body_starts, bodies, encoded.out)
    return finish(encoded, IGGY, batches)


def split_by_time(columns: Columns) -> Numbers:
    """Return the table of batches whose times lie within one span each."""
    starts = np.empty(len(columns) + columns.batches.shape[1], np.int64)
    count = find_splits(columns.batches, columns.records, starts)
    if count == columns.batches.shape[1]:
        return columns.batches
    batches = np.zeros((BATCH_FIELDS, count), np.int64)
    split_batches(columns.batches, columns.records, starts[:count], batches)
    return batches


@kernel(INTEGER, TABLE_INPUT, TABLE_INPUT, NUMBERS)
def find_splits(batches: Any, records: Any, starts: Any) -> Any:
    """Write the first record of every batch that is to be; returns how many there will be."""
    count = 0
    for batch in range(batches.shape[1]):
        first = batches[FIRST_RECORD, batch]
        starts[count] = first
        count += 1
        earliest = latest = np.int64(0)
        for row in range(first, first + batches[RECORDS, batch]):
            time = records[TIMESTAMP, row]
            earliest = time if row == starts[count - 1] else min(earliest, time)
            latest = time if row == starts[count - 1] else max(latest, time)
            if latest - earliest > _LONGEST_SPAN:
                starts[count] = row
                count += 1
                earliest = latest = time
    return count


@kernel(NOTHING, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, TABLE)
def split_batches(batches: Any, records: Any, starts: Any, out: Any) -> None:
    """Fill the table of batches that begin at these records; the offsets stay covered."""
    piece = 0
    for batch in range(batches.shape[1]):
        end = batches[FIRST_RECORD, batch] + batches[RECORDS, batch]
        last_offset = batches[BASE_OFFSET, batch] + batches[LAST_DELTA, batch]
        base_offset = batches[BASE_OFFSET, batch]
        while True:
            first = starts[piece]
            whole = piece + 1 == len(starts) or starts[piece + 1] >= end
            for field in range(BATCH_FIELDS):
                out[field, piece] = batches[field, batch]
            following = end if whole else starts[piece + 1]
            next_offset = last_offset + 1 if whole else records[OFFSET, following]
            out[FIRST_RECORD, piece] = first
            out[RECORDS, piece] = following - first
            out[COUNT, piece] = following - first
            out[BASE_OFFSET, piece] = base_offset
            out[LAST_DELTA, piece] = next_offset - base_offset - 1
            base_offset = next_offset
            piece += 1
            if whole:
                break


@helper
def _headers_size(records: Any, headers: Any, header_start: Any, row: int) -> Any:
    size = 0
    if records[KEY_SIZE, row] > 0:
        size += _ENTRY + len(_KEY) + records[KEY_SIZE, row]
    if records[VALUE_SIZE, row] < 0:
        size += _ENTRY + len(_TOMBSTONE) + 1
    for header in range(header_start[row], header_start[row + 1]):
        size += _ENTRY + headers[NAME_SIZE, header] + headers[CONTENT_SIZE, header]
    return size


@kernel(NOTHING, TABLE_INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, NUMBERS)
def measure_iggy(batches: Any, records: Any, headers: Any, header_start: Any, bodies: Any) -> None:
    """Fill in the size of every body."""
    for batch in range(batches.shape[1]):
        total = BATCH_HEADER_SIZE
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            total += FRAME_SIZE + max(records[VALUE_SIZE, row], 0)
            total += _headers_size(records, headers, header_start, row)
        bodies[batch] = total


@helper
def _write_field(out: Any, position: int, kind: int, data: Any, start: int, size: int) -> Any:
    out[position] = kind
    position = store_little(out, position + 1, 4, size)
    copy_bytes(out, position, data, start, size)
    return position + size


@helper
def _write_key(out: Any, position: int, data: Any, records: Any, row: int) -> Any:
    position = _write_field(out, position, KINDS_OF_BYTES >> 4, _KEY, 0, len(_KEY))
    size = records[KEY_SIZE, row]
    return _write_field(out, position, KIND_RAW, data, records[KEY_START, row], size)


@helper
def _write_tombstone(out: Any, position: int) -> Any:
    name = _TOMBSTONE
    position = _write_field(out, position, KINDS_OF_BYTES >> 4, name, 0, len(name))
    out[position] = _KIND_BOOL
    position = store_little(out, position + 1, 4, 1)
    out[position] = 1
    return position + 1


@helper
def _write_headers(out: Any, position: int, data: Any, headers: Any, first: int, last: int) -> Any:
    for header in range(first, last):
        kinds = headers[KINDS, header]
        start = headers[NAME_START, header]
        size = headers[NAME_SIZE, header]
        position = _write_field(out, position, kinds >> 4, data, start, size)
        start = headers[CONTENT_START, header]
        size = headers[CONTENT_SIZE, header]
        position = _write_field(out, position, kinds & 15, data, start, size)
    return position


@helper
def _write_frame(
    out: Any, position: int, data: Any, header_data: Any, records: Any, headers: Any,
    header_start: Any, row: int,
) -> Any:  # fmt: skip
    """Write payload and user headers of the frame at `position`, and their sizes."""
    value = max(records[VALUE_SIZE, row], 0)
    cursor = position + FRAME_SIZE
    if value:
        copy_bytes(out, cursor, data, records[VALUE_START, row], value)
        cursor += value
    block = cursor
    if records[KEY_SIZE, row] > 0:
        cursor = _write_key(out, cursor, data, records, row)
    if records[VALUE_SIZE, row] < 0:
        cursor = _write_tombstone(out, cursor)
    first = header_start[row]
    cursor = _write_headers(out, cursor, header_data, headers, first, header_start[row + 1])
    store_little(out, position + FRAME_HEADERS_AT, 4, cursor - block)
    store_little(out, position + FRAME_PAYLOAD_AT, 4, value)
    store_little(out, position + FRAME_PAYLOAD_AT + 4, 8, 0)
    return cursor


@helper
def _write_batch_header(out: Any, start: int, batches: Any, batch: int, origin: int) -> None:
    out[start : start + BATCH_HEADER_SIZE] = 0
    store_little(out, start + BASE_OFFSET_AT, 8, batches[BASE_OFFSET, batch])
    arrival = max(batches[MAX_TIMESTAMP, batch], 0) * 1000
    store_little(out, start + BASE_TIMESTAMP_AT, 8, arrival)
    store_little(out, start + ORIGIN_TIMESTAMP_AT, 8, origin)
    store_little(out, start + COUNT_AT, 4, batches[RECORDS, batch])


@kernel(
    NOTHING, INPUT, INPUT, TABLE_INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, TABLE_INPUT,
    NUMBERS_INPUT, NUMBERS_INPUT, OUTPUT,
)  # fmt: skip
def write_iggy(
    data: Any, header_data: Any, batches: Any, records: Any, headers: Any, header_start: Any,
    ids: Any, body_starts: Any, bodies: Any, out: Any,
) -> None:  # fmt: skip
    """Write every body at its place, checksums included."""
    for batch in range(batches.shape[1]):
        start = body_starts[batch]
        first = batches[FIRST_RECORD, batch]
        count = batches[RECORDS, batch]
        if count == 0:
            continue
        origin = records[TIMESTAMP, first]
        for row in range(first, first + count):
            origin = min(origin, records[TIMESTAMP, row])
        _write_batch_header(out, start, batches, batch, origin)
        store_little(out, start + LENGTH_AT, 8, bodies[batch])
        position = start + BATCH_HEADER_SIZE
        for row in range(first, first + count):
            store_little(out, position + FRAME_ID_AT, 8, ids[0, row])
            store_little(out, position + FRAME_ID_AT + 8, 8, ids[1, row])
            delta = records[OFFSET, row] - batches[BASE_OFFSET, batch]
            store_little(out, position + FRAME_OFFSET_AT, 4, delta)
            store_little(out, position + FRAME_TIMESTAMP_AT, 4, records[TIMESTAMP, row] - origin)
            end = _write_frame(
                out, position, data, header_data, records, headers, header_start, row
            )
            checksum = xxh3_64(out, position + 8, end - position - 8)
            store_little(out, position, 8, np.int64(checksum))
            position = end
        checksum = batch_checksum(out, start, count)
        store_little(out, start + CHECKSUM_AT, 8, np.int64(checksum))
