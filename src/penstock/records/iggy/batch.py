"""Iggy's batch of today's layout: its checks, and the header that the server stamps.

A batch is a 256-byte header and frames. Its checksums are XXH3-64: each frame's over all of the
frame behind the checksum, the batch's over its header's fields and the checksums of all frames.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.limits import IGGY_PAYLOAD_BYTES, IGGY_USER_HEADERS_BYTES
from penstock.records.columns import Bytes, as_bytes
from penstock.records.errors import MalformedBatchError
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersOut, Word, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_half, load_word, store_little
from penstock.records.kernels.xxh3 import xxh3_64

if TYPE_CHECKING:
    from penstock.session import Buffer

SOUND: Final = 0
LAYOUT: Final = 1
FRAME_CHECKSUM: Final = 2
BATCH_CHECKSUM: Final = 3
EMPTY_PAYLOAD: Final = 4
OFFSET_DELTA: Final = 5
HEADER_KEY: Final = 6
HEADER_VALUE: Final = 7
HEADER_KIND: Final = 8
LONG_HEADERS: Final = 9
LONG_PAYLOAD: Final = 10
INDEX: Final = 11
RESERVED: Final = 12


_PAYLOAD_MAX: Final = int(IGGY_PAYLOAD_BYTES)
_USER_HEADERS_MAX: Final = int(IGGY_USER_HEADERS_BYTES)


class IggyFault(IntEnum):
    """What is wrong with a batch that a producer sent."""

    LAYOUT = LAYOUT
    FRAME_CHECKSUM = FRAME_CHECKSUM
    BATCH_CHECKSUM = BATCH_CHECKSUM
    EMPTY_PAYLOAD = EMPTY_PAYLOAD
    OFFSET_DELTA = OFFSET_DELTA
    HEADER_KEY = HEADER_KEY
    HEADER_VALUE = HEADER_VALUE
    HEADER_KIND = HEADER_KIND
    LONG_HEADERS = LONG_HEADERS
    LONG_PAYLOAD = LONG_PAYLOAD
    INDEX = INDEX
    RESERVED = RESERVED


class IggyBatchError(MalformedBatchError):
    """A producer's batch that is refused; `fault` says which error its client is sent."""

    def __init__(self, fault: IggyFault) -> None:
        super().__init__(f"the {fault.name.lower().replace('_', ' ')} of an Iggy batch is wrong")
        self.fault = fault


class IggyBatch(NamedTuple):
    """What the log's header needs to know of a batch.

    The times are those that the producer gave to the messages, in microseconds since 1970.
    """

    message_count: int
    first_timestamp: int
    max_timestamp: int


def verify_iggy_batch(body: Buffer) -> IggyBatch:
    """Check all of a producer's batch in one step: layout, sizes, checksums.

    Raises IggyBatchError.
    """
    facts = np.zeros(3, np.int64)
    fault = verify(as_bytes(body), checksum_room(len(body)), facts)
    if fault != SOUND:
        raise IggyBatchError(IggyFault(fault))
    return IggyBatch(*facts.tolist())


def stamp_iggy_batch(
    body: Buffer, partition_id: int, base_offset: int, base_timestamp: int
) -> None:
    """Write what the server knows into a batch's header in place, and renew its checksum.

    `body` is writable and has been checked, or was written here. `base_timestamp` is when the
    server took it, in microseconds.
    """
    room = checksum_room(len(body))
    stamp(as_bytes(body), partition_id, base_offset, base_timestamp, room)


def checksum_room(size: int) -> Bytes:
    """Return the memory that kernels need for the checksum of a batch of `size` bytes.

    It is over 44 bytes of the header and each frame's own checksum, 8 of at least 48 bytes.
    """
    return np.empty(44 + size // 6, np.uint8)


@helper
def _entry_fault(data: BytesIn, position: int, end: int) -> int:
    """Return what is wrong with the user header at `position`, whose form is not legal."""
    fault = HEADER_KEY
    for _ in range(2):
        if end - position < layout.SMALLEST_FIELD:
            return fault
        if data[position] < 1 or data[position] > layout.LAST_KIND:
            return HEADER_KIND
        size = load_half(data, position + 1)
        if size < 1 or size > layout.LONGEST_FIELD or size > end - position - 5:
            return fault
        position += 5 + size
        fault = HEADER_VALUE
    return fault


@helper
def entries_fault(data: BytesIn, position: int, end: int) -> int:
    """Return what is wrong with user headers that are to fill these bytes, or SOUND."""
    while position < end:
        next_entry = layout.entry_end(data, position, end)
        if next_entry < 0:
            return _entry_fault(data, position, end)
        position = next_entry
    return SOUND


@helper
def size_fault(headers: int, payload: int) -> int:
    """Return what is wrong with the sizes of a message's user headers and payload, or SOUND."""
    if payload == 0:
        return EMPTY_PAYLOAD
    if payload > _PAYLOAD_MAX:
        return LONG_PAYLOAD
    if headers > _USER_HEADERS_MAX:
        return LONG_HEADERS
    return SOUND


@helper
def _frame_fault(data: BytesIn, position: int, end: int, index: int) -> int:
    payload = load_half(data, position + layout.FRAME_PAYLOAD_AT)
    fault = size_fault(load_half(data, position + layout.FRAME_HEADERS_AT), payload)
    if fault != SOUND:
        return fault
    if load_half(data, position + layout.FRAME_OFFSET_AT) != index:
        return OFFSET_DELTA
    if load_word(data, position) != xxh3_64(data, position + 8, end - position - 8):
        return FRAME_CHECKSUM
    return entries_fault(data, position + layout.FRAME_SIZE + payload, end)


@helper
def _header_fault(data: BytesIn) -> int:
    if len(data) < layout.BATCH_HEADER_SIZE or load_word(data, layout.LENGTH_AT) != len(data):
        return LAYOUT
    for position in range(layout.HEADER_USED, layout.BATCH_HEADER_SIZE):
        if data[position]:
            return LAYOUT
    if load_word(data, layout.ORIGIN_TIMESTAMP_AT) >> 62:
        return LAYOUT
    return SOUND


@kernel
def batch_checksum(data: BytesIn, start: int, count: int, room: BytesOut) -> Word:
    """Return the checksum of the batch at `start`, whose frames are known to lie in the buffer.

    What it is over is put together in `room`.
    """
    copy_bytes(room, 0, data, start, 40)
    copy_bytes(room, 40, data, start + layout.COUNT_AT, 4)
    position = start + layout.BATCH_HEADER_SIZE
    for index in range(count):
        copy_bytes(room, 44 + 8 * index, data, position, 8)
        size = load_half(data, position + layout.FRAME_HEADERS_AT)
        position += layout.FRAME_SIZE + load_half(data, position + layout.FRAME_PAYLOAD_AT) + size
    return xxh3_64(room, 0, 44 + 8 * count)


@kernel
def verify(data: BytesIn, room: BytesOut, facts: NumbersOut) -> int:
    """Return SOUND and the fields of an IggyBatch, or what is wrong."""
    fault = _header_fault(data)
    if fault != SOUND:
        return fault
    origin = int64(load_word(data, layout.ORIGIN_TIMESTAMP_AT))
    count = load_half(data, layout.COUNT_AT)
    latest = int64(0)
    position = int64(layout.BATCH_HEADER_SIZE)
    for index in range(count):
        end = layout.frame_end(data, position, len(data))
        if end < 0:
            return LAYOUT
        fault = _frame_fault(data, position, end, index)
        if fault != SOUND:
            return fault
        delta = load_half(data, position + layout.FRAME_TIMESTAMP_AT)
        latest = max(latest, delta)
        if index == 0:
            facts[1] = origin + delta
        position = end
    if count == 0 or position != len(data):
        return LAYOUT
    if load_word(data, layout.CHECKSUM_AT) != batch_checksum(data, 0, count, room):
        return BATCH_CHECKSUM
    facts[0] = count
    facts[2] = origin + latest
    return SOUND


@kernel
def stamp(
    data: BytesOut, partition_id: int, base_offset: int, base_timestamp: int, room: BytesOut
) -> None:
    """Write the three fields and the checksum into the header at the start of `data`."""
    store_little(data, layout.PARTITION_ID_AT, 8, partition_id)
    store_little(data, layout.BASE_OFFSET_AT, 8, base_offset)
    store_little(data, layout.BASE_TIMESTAMP_AT, 8, base_timestamp)
    checksum = batch_checksum(data, 0, load_half(data, layout.COUNT_AT), room)
    store_little(data, layout.CHECKSUM_AT, 8, int64(checksum))
