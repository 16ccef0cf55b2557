"""Batches of Iggy without some of their frames: the others stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.records import field
from penstock.records.iggy import layout
from penstock.records.iggy.batch import batch_checksum, checksum_room
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    NumbersIn,
    NumbersOut,
    TableIn,
    int64,
)
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import copy_bytes, store_little

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Mask, Numbers


def iggy_bodies(columns: Columns, chosen: Numbers, kept: Mask) -> tuple[Bytes, Numbers]:
    """Return the bodies of the chosen batches, of which only some frames are kept, and where each
    ends.
    """
    batches = columns.batches
    sizes = batches[field.BODY_END, chosen] - batches[field.BODY_START, chosen]
    out = np.empty(int(sizes.sum()), np.uint8)
    ends = np.empty(len(chosen), np.int64)
    room = checksum_room(int(sizes.max()) if len(chosen) else 0)
    rewrite_iggy(columns.data, batches, columns.records, chosen, kept, room, out, ends)
    return out, ends


@kernel
def rewrite_iggy(
    data: BytesIn, batches: TableIn, records: TableIn, chosen: NumbersIn, kept: MaskIn,
    room: BytesOut, out: BytesOut, ends: NumbersOut,
) -> None:  # fmt: skip
    """Write the kept frames of each chosen batch behind its header, whose sizes are made anew."""
    position = int64(0)
    for index in range(len(chosen)):
        batch = chosen[index]
        begin = position
        start = batches[field.BODY_START, batch]
        copy_bytes(out, begin, data, start, layout.BATCH_HEADER_SIZE)
        position += layout.BATCH_HEADER_SIZE
        start += layout.BATCH_HEADER_SIZE
        count = int64(0)
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            end = records[field.BLOCK_END, row]
            if kept[row]:
                copy_bytes(out, position, data, start, end - start)
                position += end - start
                count += 1
            start = end
        store_little(out, begin + layout.LENGTH_AT, 8, position - begin)
        store_little(out, begin + layout.COUNT_AT, 4, count)
        checksum = batch_checksum(out, begin, count, room)
        store_little(out, begin + layout.CHECKSUM_AT, 8, int64(checksum))
        ends[index] = position
