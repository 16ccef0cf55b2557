"""Columns, written as Iggy's frames."""

from __future__ import annotations

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.batch_headers import Encoded, restate_times, write_batch_headers
from penstock.records.columns import Columns, Numbers
from penstock.records.headers import reserved
from penstock.records.iggy import layout
from penstock.records.iggy.batch import batch_checksum, checksum_room
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, store_little
from penstock.records.kernels.xxh3 import xxh3_64

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
    further apart than an Iggy batch can express is split. Names and values of headers are 1 to 255
    bytes by now, keys too, and no time is negative.
    """
    kinds = columns.headers[field.KINDS]
    kinds[kinds == header_kinds.UNKNOWN] = header_kinds.OF_BYTES
    batches = split_by_time(columns)
    restate_times(batches, columns.records)
    tables = (columns.records, columns.headers, columns.header_start)
    bodies = np.empty(batches.shape[1], np.int64)
    measure_iggy(batches, *tables, bodies)
    encoded = Encoded.allocate(batches, bodies)
    data = (columns.data, columns.header_data)
    room = checksum_room(len(encoded.out))
    write_iggy(*data, batches, *tables, ids, encoded.body_starts, room, encoded.out)
    return write_batch_headers(encoded, Magic.IGGY, batches)


def split_by_time(columns: Columns) -> Numbers:
    """Return the table of batches whose times lie within one span each."""
    starts = np.empty(len(columns) + columns.batches.shape[1], np.int64)
    count = find_splits(columns.batches, columns.records, starts)
    if count == columns.batches.shape[1]:
        return columns.batches
    batches = np.zeros((field.BATCH_FIELDS, count), np.int64)
    split_batches(columns.batches, columns.records, starts[:count], batches)
    return batches


@kernel
def find_splits(batches: TableIn, records: TableIn, starts: NumbersOut) -> int:
    """Write the first record of every batch that is to be; returns how many there will be."""
    count = 0
    for batch in range(batches.shape[1]):
        first = batches[field.FIRST_RECORD, batch]
        starts[count] = first
        count += 1
        earliest = latest = int64(0)
        for row in range(first, first + batches[field.RECORDS, batch]):
            time = records[field.TIMESTAMP, row]
            earliest = time if row == starts[count - 1] else min(earliest, time)
            latest = time if row == starts[count - 1] else max(latest, time)
            if latest - earliest > _LONGEST_SPAN:
                starts[count] = row
                count += 1
                earliest = latest = time
    return count


@kernel
def split_batches(batches: TableIn, records: TableIn, starts: NumbersIn, out: TableOut) -> None:
    """Fill the table of batches that begin at these records; the offsets stay covered."""
    piece = 0
    for batch in range(batches.shape[1]):
        end = batches[field.FIRST_RECORD, batch] + batches[field.RECORDS, batch]
        last_offset = batches[field.BASE_OFFSET, batch] + batches[field.LAST_DELTA, batch]
        base_offset = batches[field.BASE_OFFSET, batch]
        while True:
            first = starts[piece]
            whole = piece + 1 == len(starts) or starts[piece + 1] >= end
            for each in range(field.BATCH_FIELDS):
                out[each, piece] = batches[each, batch]
            following = end if whole else starts[piece + 1]
            next_offset = last_offset + 1 if whole else records[field.OFFSET, following]
            out[field.FIRST_RECORD, piece] = first
            out[field.RECORDS, piece] = following - first
            out[field.COUNT, piece] = following - first
            out[field.BASE_OFFSET, piece] = base_offset
            out[field.LAST_DELTA, piece] = next_offset - base_offset - 1
            base_offset = next_offset
            piece += 1
            if whole:
                break


@helper
def _headers_size(records: TableIn, headers: TableIn, header_start: NumbersIn, row: int) -> int:
    size = 0
    if records[field.KEY_SIZE, row] > 0:
        size += _ENTRY + len(_KEY) + records[field.KEY_SIZE, row]
    if records[field.VALUE_SIZE, row] < 0:
        size += _ENTRY + len(_TOMBSTONE) + 1
    for header in range(header_start[row], header_start[row + 1]):
        size += _ENTRY + headers[field.NAME_SIZE, header] + headers[field.CONTENT_SIZE, header]
    return size


@kernel
def measure_iggy(
    batches: TableIn,
    records: TableIn,
    headers: TableIn,
    header_start: NumbersIn,
    bodies: NumbersOut,
) -> None:
    """Fill in the size of every body."""
    for batch in range(batches.shape[1]):
        total = layout.BATCH_HEADER_SIZE
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            total += layout.FRAME_SIZE + max(records[field.VALUE_SIZE, row], 0)
            total += _headers_size(records, headers, header_start, row)
        bodies[batch] = total


@helper
def _write_field(
    out: BytesOut, position: int, kind: int, data: BytesIn, start: int, size: int
) -> int:
    out[position] = kind
    position = store_little(out, position + 1, 4, size)
    copy_bytes(out, position, data, start, size)
    return position + size


@helper
def _write_key(out: BytesOut, position: int, data: BytesIn, records: TableIn, row: int) -> int:
    position = _write_field(out, position, header_kinds.OF_BYTES >> 4, _KEY, 0, len(_KEY))
    size = records[field.KEY_SIZE, row]
    return _write_field(out, position, header_kinds.RAW, data, records[field.KEY_START, row], size)


@helper
def _write_tombstone(out: BytesOut, position: int) -> int:
    name = _TOMBSTONE
    position = _write_field(out, position, header_kinds.OF_BYTES >> 4, name, 0, len(name))
    out[position] = _KIND_BOOL
    position = store_little(out, position + 1, 4, 1)
    out[position] = 1
    return position + 1


@helper
def _write_headers(
    out: BytesOut, position: int, data: BytesIn, headers: TableIn, first: int, last: int
) -> int:
    for header in range(first, last):
        kinds = headers[field.KINDS, header]
        start = headers[field.NAME_START, header]
        size = headers[field.NAME_SIZE, header]
        position = _write_field(out, position, kinds >> 4, data, start, size)
        start = headers[field.CONTENT_START, header]
        size = headers[field.CONTENT_SIZE, header]
        position = _write_field(out, position, kinds & 15, data, start, size)
    return position


@helper
def _write_frame(
    out: BytesOut, position: int, data: BytesIn, header_data: BytesIn, records: TableIn,
    headers: TableIn, header_start: NumbersIn, row: int,
) -> int:  # fmt: skip
    """Write payload and user headers of the frame at `position`, and their sizes."""
    value = max(records[field.VALUE_SIZE, row], 0)
    cursor = position + layout.FRAME_SIZE
    if value:
        copy_bytes(out, cursor, data, records[field.VALUE_START, row], value)
        cursor += value
    block = cursor
    if records[field.KEY_SIZE, row] > 0:
        cursor = _write_key(out, cursor, data, records, row)
    if records[field.VALUE_SIZE, row] < 0:
        cursor = _write_tombstone(out, cursor)
    first = header_start[row]
    cursor = _write_headers(out, cursor, header_data, headers, first, header_start[row + 1])
    store_little(out, position + layout.FRAME_HEADERS_AT, 4, cursor - block)
    store_little(out, position + layout.FRAME_PAYLOAD_AT, 4, value)
    store_little(out, position + layout.FRAME_PAYLOAD_AT + 4, 8, 0)
    return cursor


@helper
def _write_batch_header(
    out: BytesOut, start: int, batches: TableIn, batch: int, origin: int
) -> None:
    out[start : start + layout.BATCH_HEADER_SIZE] = 0
    store_little(out, start + layout.BASE_OFFSET_AT, 8, batches[field.BASE_OFFSET, batch])
    arrival = max(batches[field.MAX_TIMESTAMP, batch], 0) * 1000
    store_little(out, start + layout.BASE_TIMESTAMP_AT, 8, arrival)
    store_little(out, start + layout.ORIGIN_TIMESTAMP_AT, 8, origin)
    store_little(out, start + layout.COUNT_AT, 4, batches[field.RECORDS, batch])


@kernel
def write_iggy(
    data: BytesIn, header_data: BytesIn, batches: TableIn, records: TableIn, headers: TableIn,
    header_start: NumbersIn, ids: TableIn, body_starts: NumbersIn, room: BytesOut, out: BytesOut,
) -> None:  # fmt: skip
    """Write every body at its place, checksums included; `room` is `checksum_room`."""
    for batch in range(batches.shape[1]):
        start = body_starts[batch]
        first = batches[field.FIRST_RECORD, batch]
        count = batches[field.RECORDS, batch]
        if count == 0:
            continue
        origin = records[field.TIMESTAMP, first]
        for row in range(first, first + count):
            origin = min(origin, records[field.TIMESTAMP, row])
        _write_batch_header(out, start, batches, batch, origin)
        position = start + layout.BATCH_HEADER_SIZE
        for row in range(first, first + count):
            store_little(out, position + layout.FRAME_ID_AT, 8, ids[0, row])
            store_little(out, position + layout.FRAME_ID_AT + 8, 8, ids[1, row])
            delta = records[field.OFFSET, row] - batches[field.BASE_OFFSET, batch]
            store_little(out, position + layout.FRAME_OFFSET_AT, 4, delta)
            store_little(
                out, position + layout.FRAME_TIMESTAMP_AT, 4, records[field.TIMESTAMP, row] - origin
            )
            end = _write_frame(
                out, position, data, header_data, records, headers, header_start, row
            )
            checksum = xxh3_64(out, position + 8, end - position - 8)
            store_little(out, position, 8, int64(checksum))
            position = end
        store_little(out, start + layout.LENGTH_AT, 8, position - start)
        checksum = batch_checksum(out, start, count, room)
        store_little(out, start + layout.CHECKSUM_AT, 8, int64(checksum))
