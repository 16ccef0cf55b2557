"""Where everything lies in Iggy's batch of today's layout: a 256-byte header and frames.

A frame is a header of 48 bytes, the payload, and user headers: entries of a name and a value.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, int64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_half, load_word

BATCH_HEADER_SIZE: Final = 256
PARTITION_ID_AT: Final = 0
BASE_OFFSET_AT: Final = 8
BASE_TIMESTAMP_AT: Final = 16
ORIGIN_TIMESTAMP_AT: Final = 24
LENGTH_AT: Final = 32
CHECKSUM_AT: Final = 40
COUNT_AT: Final = 48
HEADER_USED: Final = 52

FRAME_SIZE: Final = 48
"""Bytes of a frame in front of its payload."""
FRAME_ID_AT: Final = 8
FRAME_OFFSET_AT: Final = 24
FRAME_TIMESTAMP_AT: Final = 28
FRAME_HEADERS_AT: Final = 32
FRAME_PAYLOAD_AT: Final = 36
FRAME_RESERVED_AT: Final = 40

SMALLEST_FIELD: Final = 6
"""Bytes of the shortest name and of the shortest value of a user header: kind, size and one."""
_SMALLEST_ENTRY: Final = 2 * SMALLEST_FIELD
LAST_KIND: Final = 15
LONGEST_FIELD: Final = 255
"""Bytes of the longest name and of the longest value of a user header; none may be empty."""


@helper
def entry_end(data: BytesIn, position: int, end: int) -> int:
    """Return the end of the user header at `position`, or -1 where its form is not legal."""
    if end - position < _SMALLEST_ENTRY:
        return int64(-1)
    for _ in range(2):
        if end - position < SMALLEST_FIELD:
            return int64(-1)
        size = load_half(data, position + 1)
        if size < 1 or size > LONGEST_FIELD or size > end - position - 5:
            return int64(-1)
        if data[position] < 1 or data[position] > LAST_KIND:
            return int64(-1)
        position += 5 + size
    return position


@helper
def frame_end(data: BytesIn, position: int, end: int) -> int:
    """Return the end of the frame at `position`, or -1 where it does not lie before `end`."""
    if end - position < FRAME_SIZE:
        return int64(-1)
    size = load_half(data, position + FRAME_HEADERS_AT)
    size += load_half(data, position + FRAME_PAYLOAD_AT) + FRAME_SIZE
    if size > end - position or load_word(data, position + FRAME_RESERVED_AT) != 0:
        return int64(-1)
    return position + size
