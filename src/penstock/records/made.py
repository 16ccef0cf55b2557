"""Whole batches as kernels write them, and what is to be known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import CRC_START, PREFIX_SIZE
from penstock.records import field
from penstock.records.kernels.arguments import BytesOut, TableOut
from penstock.records.kernels.crc32 import crc32c
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import store_big

if TYPE_CHECKING:
    from collections.abc import Sequence

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
BATCH: Final = 0
"""The index of the stored one that it is of."""
POSITION: Final = 1
END: Final = 2
FIRST_OFFSET: Final = 3
LAST_OFFSET: Final = 4
MAX_TIMESTAMP: Final = 5
MADE_FIELDS: Final = 6


class Made(NamedTuple):
    """Whole batches, and the table of them in the order of the log."""

    data: Bytes
    table: Numbers


def joined(parts: Sequence[Made]) -> Made:
    """Return what was made of batches of each kind together."""
    if len(parts) == 1:
        return parts[0]
    tables = [np.empty((MADE_FIELDS, 0), np.int64)]
    size = 0
    for part in parts:
        table = part.table.copy()
        table[[POSITION, END]] += size
        tables.append(table)
        size += len(part.data)
    together = np.concatenate(tables, axis=1)
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    return Made(data, np.take(together, np.argsort(together[BATCH], kind="stable"), axis=1))


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
def note(
    made: TableOut, index: int, batch: int, start: int, end: int, first: int, last: int, time: int
) -> None:
    """Say what was made of a batch, and where it lies."""
    made[BATCH, index] = batch
    made[POSITION, index] = start
    made[END, index] = end
    made[FIRST_OFFSET, index] = first
    made[LAST_OFFSET, index] = last
    made[MAX_TIMESTAMP, index] = time
