"""Batches of Kafka without some of their records.

What is left of a record stays as it is but for its time, which counts from the batch's base
timestamp: a batch with a delete horizon (KIP-534) has that in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.records import field
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    NumbersIn,
    NumbersOut,
    TableIn,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import (
    copy_bytes,
    read_zigzag,
    varint_size,
    write_varint,
    zigzag,
)

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Mask, Numbers

_LONGEST_VARINT = 10


def kafka_bodies(
    columns: Columns, chosen: Numbers, kept: Mask, base_timestamps: Numbers
) -> tuple[Bytes, Numbers]:
    """Return the uncompressed bodies of the chosen batches, of which only some records are kept,
    with times that count from other base timestamps; and where each ends.
    """
    batches = columns.batches
    sizes = batches[field.BODY_END, chosen] - batches[field.BODY_START, chosen]
    grown = 2 * _LONGEST_VARINT * int(batches[field.RECORDS, chosen].sum())
    out = np.empty(int(sizes.sum()) + grown, np.uint8)
    ends = np.empty(len(chosen), np.int64)
    rewrite_kafka(columns.data, batches, columns.records, chosen, kept, base_timestamps, out, ends)
    return out, ends


@helper
def _rewrite_record(
    data: BytesIn, start: int, end: int, shift: int, out: BytesOut, position: int
) -> int:
    """Copy a record, its timestamp delta greater by `shift`; returns the position behind it."""
    if shift == 0:
        copy_bytes(out, position, data, start, end - start)
        return position + end - start
    size, at = read_zigzag(data, start, end)
    delta, behind = read_zigzag(data, at + 1, end)
    moved = zigzag(delta + shift)
    size += varint_size(moved) - (behind - at - 1)
    position = write_varint(out, position, zigzag(size))
    out[position] = data[at]
    position = write_varint(out, position + 1, moved)
    copy_bytes(out, position, data, behind, end - behind)
    return position + end - behind


@kernel
def rewrite_kafka(
    data: BytesIn, batches: TableIn, records: TableIn, chosen: NumbersIn, kept: MaskIn,
    base_timestamps: NumbersIn, out: BytesOut, ends: NumbersOut,
) -> None:  # fmt: skip
    """Write the kept records of each chosen batch, whose body has been read."""
    position = 0
    for index in range(len(chosen)):
        batch = chosen[index]
        start = batches[field.BODY_START, batch]
        shift = batches[field.BASE_TIMESTAMP, batch] - base_timestamps[index]
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            end = records[field.BLOCK_END, row]
            if kept[row]:
                position = _rewrite_record(data, start, end, shift, out, position)
            start = end
        ends[index] = position
