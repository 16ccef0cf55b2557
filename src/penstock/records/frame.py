"""The header of the log, put in front of bodies that were just encoded."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from penstock.log.header import CRC_START, HEADER_SIZE, NO_PRODUCER_ID, PREFIX_SIZE
from penstock.records import field
from penstock.records.columns import Bytes, Numbers
from penstock.records.kernels.arguments import BytesOut, NumbersIn, TableIn, TableOut
from penstock.records.kernels.jit import kernel
from penstock.records.kernels.primitives import store_big

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17


@dataclass(frozen=True, slots=True)
class Encoded:
    """The buffer that bodies are written to, each behind the room for its header."""

    out: Bytes
    body_starts: Numbers
    bodies: Numbers

    @classmethod
    def allocate(cls, batches: Numbers, bodies: Numbers) -> Encoded:
        """Make room for bodies of these sizes. A batch without records takes no room at all."""
        sizes = np.where(batches[field.RECORDS] > 0, bodies + HEADER_SIZE, 0)
        ends = np.cumsum(sizes)
        out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        return cls(out, ends - bodies, bodies)


def finish(encoded: Encoded, magic: int, batches: Numbers) -> memoryview:
    """Write the header and the checksum of every batch that has records; returns all of them."""
    write_headers(batches, magic, encoded.body_starts, encoded.bodies, encoded.out)
    view = encoded.out.data
    for batch in np.flatnonzero(batches[field.RECORDS]):
        start = int(encoded.body_starts[batch])
        end = start + int(encoded.bodies[batch])
        start -= HEADER_SIZE
        _CRC.pack_into(view, start + _CRC_AT, crc32c(view[start + CRC_START : end]))
    return view


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
def write_headers(
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
        position = store_big(out, position, 6, 0)
        position = store_big(out, position, 4, batches[field.LAST_DELTA, batch])
        position = store_big(out, position, 8, batches[field.BASE_TIMESTAMP, batch])
        position = store_big(out, position, 8, batches[field.MAX_TIMESTAMP, batch])
        # No producer id, no epoch, no sequence.
        for _ in range(14):
            out[position] = NO_PRODUCER_ID & 0xFF
            position += 1
        store_big(out, position, 4, batches[field.COUNT, batch])
