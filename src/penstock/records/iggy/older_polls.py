"""Stored batches as consumers of Iggy's older dialects read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.limits import IGGY_USER_HEADERS_BYTES
from penstock.records.columns import as_bytes
from penstock.records.iggy import layout, older_layout
from penstock.records.iggy.older import Form
from penstock.records.kernels.arguments import BytesIn, BytesOut, int64
from penstock.records.kernels.crc32 import crc32
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_half, load_word, store_little
from penstock.records.kernels.xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.session import Buffer

_AVAILABLE = 1
"""The state of every message that is there."""


class Frames(NamedTuple):
    """A batch's header, and the buffer in which its frames begin at `start` and end."""

    header: Buffer
    data: Buffer
    start: int

    @property
    def size(self) -> int:
        return len(self.data) - self.start


class Unread(NamedTuple):
    """A batch that is still to be read, of so many bytes: `read` fills memory with it."""

    size: int
    read: Callable[[memoryview], None]


def to_older(batches: Sequence[Frames | Unread], count: int, form: Form) -> memoryview:
    """Return the messages of stored batches, `count` in all. Raises what reading one raises.

    What is still to be read is read to the end of the memory that all are written to, and written
    over by its own messages: the processor would wait for other memory longer than all else takes.
    """
    spare = _before_frames(form, [batch.size for batch in batches if isinstance(batch, Unread)])
    out = np.empty(sum(batch.size for batch in batches) + _longer(form) * count + spare, np.uint8)
    end = 0
    for batch in batches:
        if isinstance(batch, Frames):
            header, data, start = as_bytes(batch.header), as_bytes(batch.data), batch.start
        else:
            header = data = out[-batch.size :]
            start = layout.BATCH_HEADER_SIZE
            batch.read(data.data)
        end = write_older(header, data, start, form, out, end)
    out.resize(end, refcheck=False)  # What lies behind it is free now, not when all was sent.
    return out.data


def _longer(form: Form) -> int:
    """Return how many bytes a message takes more than its frame, at most."""
    return max(0, form - layout.FRAME_SIZE)


def _before_frames(form: Form, sizes: Sequence[int]) -> int:
    """Return how far messages have to stay behind the frames of batches of these sizes that they
    are written over, besides the batches' headers: early ones begin with what frames end with.
    """
    return min(max(sizes, default=0), IGGY_USER_HEADERS_BYTES) if form is Form.EARLY else 0


@helper
def _write_entries(out: BytesOut, position: int, data: BytesIn, start: int, end: int) -> int:
    """Write user headers without the kinds of their keys; returns their end."""
    while start < end:
        following = layout.entry_end(data, start, end)
        if following < 0:
            break
        copy_bytes(out, position, data, start + 1, following - start - 1)
        position += following - start - 1
        start = following
    return position


@helper
def _write_early(
    out: BytesOut, position: int, data: BytesIn, at: int, offset: int, taken_at: int
) -> int:
    """Write the message of the frame at `at`; returns its end.

    It may be written over its frame where it lies before that by as much as its headers have.
    """
    payload = load_half(data, at + layout.FRAME_PAYLOAD_AT)
    headers = load_half(data, at + layout.FRAME_HEADERS_AT)
    payload_at = at + layout.FRAME_SIZE
    checksum = crc32(data, payload_at, payload_at + payload)
    copy_bytes(out, position + 17, data, at + layout.FRAME_ID_AT, 16)
    store_little(out, position, 8, offset)
    out[position + 8] = _AVAILABLE
    store_little(out, position + 9, 8, taken_at)
    store_little(out, position + 33, 4, checksum)
    body = position + 41
    headers_at = payload_at + payload
    end = _write_entries(out, body, data, headers_at, headers_at + headers)
    store_little(out, position + 37, 4, end - body)
    store_little(out, end, 4, payload)
    copy_bytes(out, end + 4, data, payload_at, payload)
    return end + 4 + payload


@helper
def _write_later(
    out: BytesOut, position: int, data: BytesIn, at: int, offset: int, taken_at: int, made_at: int,
    form: int,
) -> int:  # fmt: skip
    """Write the message of the frame at `at`; returns its end. It may be written over its frame
    where it begins no later than that, less what it takes more.
    """
    payload = load_half(data, at + layout.FRAME_PAYLOAD_AT)
    headers = load_half(data, at + layout.FRAME_HEADERS_AT)
    payload_at = at + layout.FRAME_SIZE
    body = position + form
    copy_bytes(out, position + older_layout.ID_AT, data, at + layout.FRAME_ID_AT, 16)
    copy_bytes(out, body, data, payload_at, payload)
    body += payload
    headers_at = payload_at + payload
    if form == older_layout.WITH_RESERVE:
        copy_bytes(out, body, data, headers_at, headers)
        end = body + headers
        store_little(out, position + older_layout.RESERVE_AT, 8, 0)
    else:
        end = _write_entries(out, body, data, headers_at, headers_at + headers)
    store_little(out, position + older_layout.OFFSET_AT, 8, offset)
    store_little(out, position + older_layout.TIMESTAMP_AT, 8, taken_at)
    store_little(out, position + older_layout.ORIGIN_AT, 8, made_at)
    store_little(out, position + older_layout.HEADERS_AT, 4, end - body)
    store_little(out, position + older_layout.PAYLOAD_AT, 4, payload)
    store_little(out, position, 8, int64(xxh3_64(out, position + 8, end - position - 8)))
    return end


@kernel
def write_older(
    header: BytesIn, data: BytesIn, start: int, form: int, out: BytesOut, position: int
) -> int:
    """Write the messages of one batch at `position`; returns their end.

    They may be written over the batch, of which no more is read than what follows; see `to_older`.
    """
    base_offset = int64(load_word(header, layout.BASE_OFFSET_AT))
    taken_at = int64(load_word(header, layout.BASE_TIMESTAMP_AT))
    origin = int64(load_word(header, layout.ORIGIN_TIMESTAMP_AT))
    at = int64(start)
    while at < len(data):
        end = layout.frame_end(data, at, len(data))
        if end < 0:
            break
        offset = base_offset + load_half(data, at + layout.FRAME_OFFSET_AT)
        if form == older_layout.EARLY:
            position = _write_early(out, position, data, at, offset, taken_at)
        else:
            made_at = origin + load_half(data, at + layout.FRAME_TIMESTAMP_AT)
            position = _write_later(out, position, data, at, offset, taken_at, made_at, form)
        at = end
    return position
