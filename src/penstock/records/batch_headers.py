"""The log's batch headers, many at once: read in front of a run's bodies, and written there.

What a batch's header says is one column of the table of batches (`field`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    CRC_START,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    PREFIX_SIZE,
    Magic,
)
from penstock.records import field
from penstock.records.arena import checked_size
from penstock.records.columns import Bytes, Numbers
from penstock.records.encoding import Encoding
from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import load_big, store_big

_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_LAST_DELTA_AT: Final = 23
_BASE_TIMESTAMP_AT: Final = 27
_MAX_TIMESTAMP_AT: Final = 35
_COUNT_AT: Final = 57
_SIGNED_32: Final = 1 << 31
_CRC: Final = struct.Struct(">I")


def read_batch_headers(data: Bytes) -> Numbers:
    """Return the table of the whole batches that `data` consists of.

    Raises MalformedBatchError where it does not consist of whole batches of known encodings, or
    where a header's numbers can't be.
    """
    count = count_batches(data)
    if count < 0:
        raise MalformedBatchError("these bytes are not a run of whole batches")
    batches = np.zeros((field.BATCH_FIELDS, count), np.int64)
    bad = fill_batches(data, batches)
    if bad >= 0:
        raise malformed(batches, bad, "a header's numbers contradict each other")
    batches[field.FIRST_RECORD, 1:] = np.cumsum(batches[field.RECORDS])[:-1]
    return batches


def malformed(batches: Numbers, batch: int, reason: str) -> MalformedBatchError:
    """Return the error that names where this batch lies in the log."""
    base_offset = int(batches[field.BASE_OFFSET, batch])
    last_delta = int(batches[field.LAST_DELTA, batch])
    return MalformedBatchError(reason, base_offset, base_offset + last_delta + 1)


def check_read(batches: Numbers, unreadable: int) -> None:
    """Raise MalformedBatchError if a kernel returned the index of a batch rather than -1."""
    if unreadable >= 0:
        raise malformed(batches, unreadable, "its body can't be read in its own encoding")


@dataclass(frozen=True, slots=True)
class Encoded:
    """The buffer that bodies are written to, each behind the room for its header."""

    out: Bytes
    body_starts: Numbers
    bodies: Numbers

    @classmethod
    def allocate(cls, batches: Numbers, bodies: Numbers) -> Encoded:
        """Make room for bodies of these sizes. A batch without records takes no room at all.

        Raises OverLimitError.
        """
        sizes = np.where(batches[field.RECORDS] > 0, bodies + HEADER_SIZE, 0)
        ends = np.cumsum(sizes)
        out = np.empty(checked_size(int(ends[-1])) if len(ends) else 0, np.uint8)
        return cls(out, ends - bodies, bodies)


def write_batch_headers(encoded: Encoded, magic: Encoding, batches: Numbers) -> memoryview:
    """Write the header and the checksum of every batch that has records; returns all of them."""
    write_fields(batches, magic, encoded.body_starts, encoded.bodies, encoded.out)
    view = encoded.out.data
    for batch in np.flatnonzero(batches[field.RECORDS]):
        start = int(encoded.body_starts[batch])
        end = start + int(encoded.bodies[batch])
        start -= HEADER_SIZE
        _CRC.pack_into(view, start + _CRC_AT, crc32c(view[start + CRC_START : end]))
    return view


@kernel
def count_batches(data: BytesIn) -> int:
    """Return how many batches these bytes are, or -1 when they are not whole batches."""
    position = 0
    count = 0
    while position + HEADER_SIZE <= len(data):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        if size < HEADER_SIZE or size > len(data) - position:
            return -1
        position += size
        count += 1
    return count if position == len(data) else -1


@kernel
def fill_batches(data: BytesIn, batches: TableOut) -> int:
    """Fill the table; returns the index of the first impossible header, or -1."""
    position = 0
    for batch in range(batches.shape[1]):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        magic = int64(data[position + _MAGIC_AT])
        count = load_big(data, position + _COUNT_AT, 4)
        last_delta = load_big(data, position + _LAST_DELTA_AT, 4)
        attributes = load_big(data, position + _ATTRIBUTES_AT, 2)
        batches[field.POSITION, batch] = position
        batches[field.MAGIC, batch] = magic
        batches[field.BASE_OFFSET, batch] = load_big(data, position, 8)
        batches[field.LAST_DELTA, batch] = last_delta
        batches[field.ATTRIBUTES, batch] = attributes
        batches[field.BASE_TIMESTAMP, batch] = load_big(data, position + _BASE_TIMESTAMP_AT, 8)
        batches[field.MAX_TIMESTAMP, batch] = load_big(data, position + _MAX_TIMESTAMP_AT, 8)
        batches[field.COUNT, batch] = count
        batches[field.BODY_START, batch] = position + HEADER_SIZE
        batches[field.BODY_END, batch] = position + size
        batches[field.RECORDS, batch] = 0 if attributes & ATTRIBUTE_CONTROL else count
        is_known = magic <= Magic.KAFKA or magic in (Magic.IGGY, Magic.PULSAR)
        if not is_known or last_delta >= _SIGNED_32:
            return batch
        if count > last_delta + 1 or batches[field.BASE_OFFSET, batch] < 0:
            return batch
        position += size
    return -1


@kernel
def restate_times(batches: TableOut, records: TableIn) -> None:
    """Set the times of every batch, in milliseconds, to what its records say."""
    for batch in range(batches.shape[1]):
        first = batches[field.FIRST_RECORD, batch]
        count = batches[field.RECORDS, batch]
        if count == 0:
            continue
        latest = records[field.TIMESTAMP, first]
        for row in range(first, first + count):
            latest = max(latest, records[field.TIMESTAMP, row])
        batches[field.BASE_TIMESTAMP, batch] = records[field.TIMESTAMP, first] // 1000
        batches[field.MAX_TIMESTAMP, batch] = latest // 1000


@kernel
def write_fields(
    batches: TableIn, magic: int, body_starts: NumbersIn, bodies: NumbersIn, out: BytesOut
) -> None:
    """Write each batch's header, but for the checksum, in front of its body."""
    for batch in range(batches.shape[1]):
        if batches[field.RECORDS, batch] == 0:
            continue
        position = body_starts[batch] - HEADER_SIZE
        position = store_big(out, position, 8, batches[field.BASE_OFFSET, batch])
        position = store_big(out, position, 4, HEADER_SIZE - PREFIX_SIZE + bodies[batch])
        position = store_big(out, position, 4, 0)
        position = store_big(out, position, 1, magic)
        position = store_big(out, position, 4, 0)
        appended = batches[field.ATTRIBUTES, batch] & ATTRIBUTE_LOG_APPEND_TIME
        position = store_big(out, position, 2, appended if magic == Magic.KAFKA else int64(0))
        position = store_big(out, position, 4, batches[field.LAST_DELTA, batch])
        position = store_big(out, position, 8, batches[field.BASE_TIMESTAMP, batch])
        position = store_big(out, position, 8, batches[field.MAX_TIMESTAMP, batch])
        # No producer id, no epoch, no sequence.
        for _ in range(14):
            out[position] = NO_PRODUCER_ID & 0xFF
            position += 1
        store_big(out, position, 4, batches[field.COUNT, batch])
