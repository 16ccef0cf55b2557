"""Iggy's batch of today's layout: its checks, and the header that the server stamps.

A batch is a 256-byte header and frames. Its checksums are XXH3-64: each frame's over all of the
frame behind the checksum, the batch's over its header's fields and the checksums of all frames.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from penstock.records.columns import as_bytes
from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NOTHING,
    NUMBERS,
    OUTPUT,
    WORD,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import copy_bytes, load_half, load_word, store_little
from penstock.records.kernels.xxh3 import xxh3_64

if TYPE_CHECKING:
    from penstock.session import Buffer

BATCH_HEADER_SIZE: Final = 256
PARTITION_ID_AT: Final = 0
BASE_OFFSET_AT: Final = 8
BASE_TIMESTAMP_AT: Final = 16
ORIGIN_TIMESTAMP_AT: Final = 24
LENGTH_AT: Final = 32
CHECKSUM_AT: Final = 40
COUNT_AT: Final = 48
_HEADER_USED: Final = 52

FRAME_SIZE: Final = 48
"""Bytes of a frame in front of its payload."""
FRAME_ID_AT: Final = 8
FRAME_OFFSET_AT: Final = 24
FRAME_TIMESTAMP_AT: Final = 28
FRAME_HEADERS_AT: Final = 32
FRAME_PAYLOAD_AT: Final = 36
FRAME_RESERVED_AT: Final = 40

_SMALLEST_ENTRY: Final = 12
_LAST_KIND: Final = 15
LONGEST_FIELD: Final = 255
"""Bytes of the longest name and of the longest value of a user header; none may be empty."""

SOUND: Final = 0
LAYOUT: Final = 1
FRAME_CHECKSUM: Final = 2
BATCH_CHECKSUM: Final = 3
EMPTY_PAYLOAD: Final = 4
USER_HEADERS: Final = 5
OFFSET_DELTA: Final = 6


class IggyFault(IntEnum):
    """What is wrong with a batch that a producer sent."""

    LAYOUT = LAYOUT
    FRAME_CHECKSUM = FRAME_CHECKSUM
    BATCH_CHECKSUM = BATCH_CHECKSUM
    EMPTY_PAYLOAD = EMPTY_PAYLOAD
    USER_HEADERS = USER_HEADERS
    OFFSET_DELTA = OFFSET_DELTA


class IggyBatchError(MalformedBatchError):
    """A producer's batch that is refused; `fault` says which error its client should hear."""

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

    Raises IggyBatchError. How large a payload may be is left to the caller, who knows the limits.
    """
    facts = np.zeros(3, np.int64)
    fault = verify(as_bytes(body), facts)
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
    stamp(as_bytes(body), partition_id, base_offset, base_timestamp)


@helper
def entry_end(data: Any, position: int, end: int) -> Any:
    """Return the end of the user header at `position`, or -1 where its form is not legal."""
    if end - position < _SMALLEST_ENTRY:
        return np.int64(-1)
    for _ in range(2):
        if end - position < 6:
            return np.int64(-1)
        size = load_half(data, position + 1)
        if size < 1 or size > LONGEST_FIELD or size > end - position - 5:
            return np.int64(-1)
        if data[position] < 1 or data[position] > _LAST_KIND:
            return np.int64(-1)
        position += 5 + size
    return position


@helper
def frame_end(data: Any, position: int, end: int) -> Any:
    """Return the end of the frame at `position`, or -1 where it does not lie before `end`."""
    if end - position < FRAME_SIZE:
        return np.int64(-1)
    size = load_half(data, position + FRAME_HEADERS_AT)
    size += load_half(data, position + FRAME_PAYLOAD_AT) + FRAME_SIZE
    if size > end - position or load_word(data, position + FRAME_RESERVED_AT) != 0:
        return np.int64(-1)
    return position + size


@helper
def _frame_fault(data: Any, position: int, end: int, index: int) -> Any:
    payload = load_half(data, position + FRAME_PAYLOAD_AT)
    if payload == 0:
        return EMPTY_PAYLOAD
    if load_half(data, position + FRAME_OFFSET_AT) != index:
        return OFFSET_DELTA
    if load_word(data, position) != xxh3_64(data, position + 8, end - position - 8):
        return FRAME_CHECKSUM
    entry = position + FRAME_SIZE + payload
    while entry < end:
        entry = entry_end(data, entry, end)
        if entry < 0:
            return USER_HEADERS
    return SOUND


@helper
def _header_fault(data: Any) -> Any:
    if len(data) < BATCH_HEADER_SIZE or load_word(data, LENGTH_AT) != len(data):
        return LAYOUT
    for position in range(_HEADER_USED, BATCH_HEADER_SIZE):
        if data[position]:
            return LAYOUT
    if load_word(data, ORIGIN_TIMESTAMP_AT) >> 62:
        return LAYOUT
    return SOUND


@kernel(WORD, INPUT, INTEGER, INTEGER, allocates=True)
def batch_checksum(data: Any, start: int, count: int) -> Any:
    """Return the checksum of the batch at `start`, whose frames are known to lie in the buffer."""
    summed = np.empty(44 + 8 * count, np.uint8)
    copy_bytes(summed, 0, data, start, 40)
    copy_bytes(summed, 40, data, start + COUNT_AT, 4)
    position = start + BATCH_HEADER_SIZE
    for index in range(count):
        copy_bytes(summed, 44 + 8 * index, data, position, 8)
        size = load_half(data, position + FRAME_HEADERS_AT)
        position += FRAME_SIZE + load_half(data, position + FRAME_PAYLOAD_AT) + size
    return xxh3_64(summed, 0, len(summed))


@kernel(INTEGER, INPUT, NUMBERS)
def verify(data: Any, facts: Any) -> Any:
    """Return SOUND and the fields of an IggyBatch, or what is wrong."""
    fault = _header_fault(data)
    if fault != SOUND:
        return fault
    origin = np.int64(load_word(data, ORIGIN_TIMESTAMP_AT))
    count = load_half(data, COUNT_AT)
    latest = np.int64(0)
    position = np.int64(BATCH_HEADER_SIZE)
    for index in range(count):
        end = frame_end(data, position, len(data))
        if end < 0:
            return LAYOUT
        fault = _frame_fault(data, position, end, index)
        if fault != SOUND:
            return fault
        delta = load_half(data, position + FRAME_TIMESTAMP_AT)
        latest = max(latest, delta)
        if index == 0:
            facts[1] = origin + delta
        position = end
    if count == 0 or position != len(data):
        return LAYOUT
    if load_word(data, CHECKSUM_AT) != batch_checksum(data, 0, count):
        return BATCH_CHECKSUM
    facts[0] = count
    facts[2] = origin + latest
    return SOUND


@kernel(NOTHING, OUTPUT, INTEGER, INTEGER, INTEGER)
def stamp(data: Any, partition_id: int, base_offset: int, base_timestamp: int) -> None:
    """Write the three fields and the checksum into the header at the start of `data`."""
    store_little(data, PARTITION_ID_AT, 8, partition_id)
    store_little(data, BASE_OFFSET_AT, 8, base_offset)
    store_little(data, BASE_TIMESTAMP_AT, 8, base_timestamp)
    checksum = batch_checksum(data, 0, load_half(data, COUNT_AT))
    store_little(data, CHECKSUM_AT, 8, np.int64(checksum))
