"""Whole batches as kernels write them, some that follow one another at a time: a stretch.

A stretch has no gap before its first batch and none behind its last one: what lies there may become
one gap with what goes before and behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import CRC_START, PREFIX_SIZE, Magic
from penstock.records import field
from penstock.records.kernels.arguments import BytesIn, BytesOut, TableOut, int64
from penstock.records.kernels.crc32 import crc32c
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import copy_bytes, store_big

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Numbers

LENGTH_AT: Final = 8
EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_AT: Final = 43
PRODUCER_SIZE: Final = 14
"""Producer id, epoch and sequence number."""
COUNT_AT: Final = 57

# Fields of a batch that is made.
POSITION: Final = 0
FIRST_OFFSET: Final = 1
LAST_OFFSET: Final = 2
MAX_TIMESTAMP: Final = 3
BEGINS_STRETCH: Final = 4
"""1 or 0; of Pulsar's alone."""
MADE_FIELDS: Final = 5


class Made(NamedTuple):
    """Whole batches in stretches."""

    data: Bytes
    table: Numbers
    """Of each its position in `data`, first and last offset, and highest timestamp; at the end
    there is one more, of which only the position counts.
    """
    ends: Numbers
    """The number of the batch behind those of each stretch."""


def stored_numbers(columns: Columns, at: int) -> Numbers:
    """Return the number of four bytes at a position in the header of each batch."""
    places = columns.batches[field.POSITION][:, np.newaxis] + np.arange(at, at + 4)
    found: Numbers = columns.data[places].view(">i4")[:, 0].astype(np.int64)
    return found


@helper
def write_header(
    out: BytesOut, position: int, magic: int, attributes: int, base_timestamp: int,
    max_timestamp: int, first: int, last: int, count: int,
) -> int:  # fmt: skip
    """Write a batch's header but for its length, leader epoch, producer and checksum; return the
    position of its body.
    """
    store_big(out, position, 8, first)
    out[position + _MAGIC_AT] = magic
    at = store_big(out, position + CRC_START, 2, attributes)
    at = store_big(out, at, 4, last - first)
    at = store_big(out, at, 8, base_timestamp)
    store_big(out, at, 8, max_timestamp)
    return store_big(out, position + COUNT_AT, 4, count)


@helper
def seal(out: BytesOut, position: int, end: int) -> None:
    """Write a batch's length and its checksum."""
    store_big(out, position + LENGTH_AT, 4, end - position - PREFIX_SIZE)
    store_big(out, position + _CRC_AT, 4, crc32c(out, position + CRC_START, end))


@helper
def write_gap(
    out: BytesOut, position: int, data: BytesIn, source: int, first: int, last: int
) -> int:
    """Write a batch without records, as `penstock.log.header.build_gap` does."""
    none = int64(-1)
    end = write_header(out, position, Magic.KAFKA, 0, none, none, first, last, 0)
    copy_bytes(out, position + EPOCH_AT, data, source + EPOCH_AT, 4)
    for index in range(PRODUCER_SIZE):
        out[position + PRODUCER_AT + index] = 0xFF
    seal(out, position, end)
    return end


@helper
def note(made: TableOut, index: int, position: int, first: int, last: int, time: int) -> None:
    """Say what was written at a position."""
    made[POSITION, index] = position
    made[FIRST_OFFSET, index] = first
    made[LAST_OFFSET, index] = last
    made[MAX_TIMESTAMP, index] = time
