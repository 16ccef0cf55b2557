"""Part of a stored Iggy batch, behind a header of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.records.columns import as_bytes
from penstock.records.iggy import layout
from penstock.records.iggy.batch import checksum_room
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersOut, int64
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import copy_bytes, load_half, store_little
from penstock.records.kernels.xxh3 import xxh3_64

if TYPE_CHECKING:
    from penstock.session import Buffer


class IggyRun(NamedTuple):
    """Frames `start` to `end` of a batch, and the header that they need; deltas as in the batch.

    `messages` is 0 where nothing is wanted; the other fields mean nothing then.
    """

    header: Buffer
    start: int
    end: int
    messages: int
    last_offset_delta: int


def cut_iggy_batch(body: Buffer, first_offset_delta: int, count: int) -> IggyRun:
    """Find up to `count` frames from an offset on; `body` has been checked when it was stored."""
    header = np.empty(layout.BATCH_HEADER_SIZE, np.uint8)
    run = np.zeros(4, np.int64)
    room = checksum_room(min(len(body), layout.BATCH_HEADER_SIZE + layout.FRAME_SIZE * count))
    cut(as_bytes(body), first_offset_delta, count, header, room, run)
    return IggyRun(header.data, *run.tolist())


@kernel
def cut(
    data: BytesIn, first_offset_delta: int, count: int, header: BytesOut, room: BytesOut,
    run: NumbersOut,
) -> None:  # fmt: skip
    """Write the header of the run, and its start, end, number of frames and last offset delta."""
    position = int64(layout.BATCH_HEADER_SIZE)
    messages = int64(0)
    while messages < count:
        end = layout.frame_end(data, position, len(data))
        if end < 0:
            break
        delta = load_half(data, position + layout.FRAME_OFFSET_AT)
        if delta >= first_offset_delta:
            if messages == 0:
                run[0] = position
            run[1] = end
            run[3] = delta
            copy_bytes(room, 44 + 8 * messages, data, position, 8)
            messages += 1
        position = end
    run[2] = messages
    copy_bytes(header, 0, data, 0, layout.BATCH_HEADER_SIZE)
    store_little(header, layout.LENGTH_AT, 8, layout.BATCH_HEADER_SIZE + run[1] - run[0])
    store_little(header, layout.COUNT_AT, 4, messages)
    copy_bytes(room, 0, header, 0, 40)
    copy_bytes(room, 40, header, layout.COUNT_AT, 4)
    checksum = xxh3_64(room, 0, 44 + 8 * messages)
    store_little(header, layout.CHECKSUM_AT, 8, int64(checksum))
