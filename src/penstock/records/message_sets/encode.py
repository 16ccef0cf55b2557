"""Columns, written as message sets of magic 0 or 1.

Each comes behind a header of the log's, which says what offsets it spans. Where one set ends and
the next begins means nothing to a client, so they are cut to a size of which one can be searched
in a moment. They are not compressed, whatever the batches were: old and new clients read them
so, and a message of them can be had without those around it. Headers are left out, as Kafka does.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.records import field
from penstock.records.batch_headers import Encoded, write_batch_headers
from penstock.records.columns import Columns, Numbers
from penstock.records.encoding import MessageSetMagic
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersIn, TableIn
from penstock.records.kernels.crc32 import crc32
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_big, store_big
from penstock.records.kernels.times import milliseconds
from penstock.records.message_sets import layout

SET_BYTES: Final = 64 * 1024
"""A set ends with the message that reaches so many."""


def encode_message_sets(columns: Columns, magic: MessageSetMagic) -> memoryview:
    """Return the records as sets of this magic, one behind the other. Nothing where there are none.

    Raises OverLimitError.
    """
    if not len(columns):
        return memoryview(b"")
    records = columns.records
    sizes = np.maximum(records[field.KEY_SIZE], 0) + np.maximum(records[field.VALUE_SIZE], 0)
    sizes += layout.SMALLEST + (layout.TIMESTAMP_SIZE if magic else 0)
    sets = _sets(columns, np.cumsum(sizes))
    bodies = np.add.reduceat(sizes, sets[field.FIRST_RECORD])
    encoded = Encoded.allocate(sets, bodies)
    types = np.ascontiguousarray(columns.timestamp_types)
    write_messages(
        columns.data, sets, records, sizes, types, encoded.body_starts, magic, encoded.out
    )
    return write_batch_headers(encoded, magic, sets)


def _sets(columns: Columns, ends: Numbers) -> Numbers:
    """Return the table of the sets that the records become, which span all their batches."""
    starts = np.concatenate(([0], ends[:-1]))
    numbers = starts // SET_BYTES
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    sets = np.zeros((field.BATCH_FIELDS, len(firsts)), np.int64)
    batches = columns.batches
    bases = columns.offsets[firsts]
    bases[0] = batches[field.BASE_OFFSET, 0]
    next_offset = batches[field.BASE_OFFSET, -1] + batches[field.LAST_DELTA, -1] + 1
    sets[field.BASE_OFFSET] = bases
    sets[field.LAST_DELTA] = np.diff(bases, append=next_offset) - 1
    sets[field.FIRST_RECORD] = firsts
    sets[field.RECORDS] = sets[field.COUNT] = np.diff(firsts, append=len(columns))
    return sets


@helper
def _write_span(out: BytesOut, position: int, data: BytesIn, start: int, size: int) -> int:
    position = store_big(out, position, 4, size)
    if size > 0:
        copy_bytes(out, position, data, start, size)
        position += size
    return position


@kernel
def write_messages(
    data: BytesIn, sets: TableIn, records: TableIn, sizes: NumbersIn, types: NumbersIn,
    body_starts: NumbersIn, magic: int, out: BytesOut,
) -> None:  # fmt: skip
    """Write the messages of every set at its place, with their checksums."""
    for each in range(sets.shape[1]):
        position = body_starts[each]
        first = sets[field.FIRST_RECORD, each]
        for row in range(first, first + sets[field.RECORDS, each]):
            start = position
            position = store_big(out, position, 8, records[field.OFFSET, row])
            position = store_big(out, position, 4, sizes[row] - layout.PREFIX)
            position += 4
            out[position] = magic
            out[position + 1] = types[row] * layout.LOG_APPEND_TIME * magic
            position += 2
            if magic == 1:
                time = milliseconds(records[field.TIMESTAMP, row])
                position = store_big(out, position, layout.TIMESTAMP_SIZE, time)
            position = _write_span(
                out, position, data, records[field.KEY_START, row], records[field.KEY_SIZE, row]
            )
            position = _write_span(
                out, position, data, records[field.VALUE_START, row], records[field.VALUE_SIZE, row]
            )
            checksum = crc32(out, start + layout.MAGIC_AT, position)
            store_big(out, start + layout.CRC_AT, 4, checksum)


@kernel
def find_message(data: BytesIn, offset: int) -> int:
    """Return where the first message of an offset of at least `offset` begins in a whole set."""
    position = 0
    while position < len(data) and load_big(data, position, 8) < offset:
        position += layout.PREFIX + load_big(data, position + layout.SIZE_AT, 4)
    return position
