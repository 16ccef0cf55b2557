"""What the records of a Kafka producer have to be before they are stored (KIP-98).

What is sound here, Kafka's clients and `decode` can read. Everything is looked at but the bytes of
keys, values and headers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.limits import DECODED_ROWS
from penstock.log.header import ATTRIBUTE_COMPRESSION, HEADER_SIZE
from penstock.records.columns import as_bytes
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.kafka.compression import inflate_kafka
from penstock.records.kernels.arguments import BytesIn, NumbersOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_word, read_varint

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

SOUND: Final = 0
STRUCTURE: Final = 1
OFFSET_DELTA: Final = 2
TIMESTAMP: Final = 3
TRAILING_BYTES: Final = 4
NO_KEY: Final = 5
MANY_HEADERS: Final = 6

LATEST: Final = 0
AT_FAULT: Final = 1
FACTS: Final = 2

_INT_BYTES: Final = 5
"""Bytes that a number of 32 bits is written in at most: Kafka's clients read no longer forms."""
_HEAD_ROOM: Final = 32
"""Bytes in which a plain record's numbers before its key lie, and a word behind each of them."""
_WORD: Final = 8
_LONG: Final = 4
_HEADERS_MAX: Final = int(DECODED_ROWS)
_TIME_MAX: Final = (1 << 63) - 1


class KafkaFault(IntEnum):
    """What is wrong with a producer's records."""

    STRUCTURE = STRUCTURE
    OFFSET_DELTA = OFFSET_DELTA
    TIMESTAMP = TIMESTAMP
    TRAILING_BYTES = TRAILING_BYTES
    NO_KEY = NO_KEY
    MANY_HEADERS = MANY_HEADERS


_REASONS: Final = {
    KafkaFault.STRUCTURE: "its sizes and numbers make no sense",
    KafkaFault.OFFSET_DELTA: "its offset delta is not its place in the batch",
    KafkaFault.TIMESTAMP: "its time is none that fits into 64 bits",
    KafkaFault.TRAILING_BYTES: "there are bytes behind the last record",
    KafkaFault.NO_KEY: "it has no key, and the topic is compacted",
    KafkaFault.MANY_HEADERS: f"the batch has more than {_HEADERS_MAX} headers",
}


class KafkaRecordError(MalformedBatchError):
    """Records that are refused; `record` is the index of the first one at fault in its batch."""

    def __init__(self, fault: KafkaFault, record: int) -> None:
        super().__init__(f"record {record} of the batch: {_REASONS[fault]}")
        self.fault = fault
        self.record = record


def validate_kafka(batch: Buffer, header: BatchHeader, *, keyed: bool) -> int:
    """Check all records of a producer's batch; returns their latest time, in milliseconds.

    The header's checksum and count have been checked. With `keyed` every record needs a key.
    Raises MalformedBatchError, which is a KafkaRecordError where one record is to blame, and
    OverLimitError where there is more than may be inflated or decoded.
    """
    if header.record_count > DECODED_ROWS:
        raise OverLimitError(f"{header.record_count} records in a batch, over {DECODED_ROWS}")
    body = memoryview(batch)[HEADER_SIZE:]
    codec = header.attributes & ATTRIBUTE_COMPRESSION
    data = inflate_kafka(codec, body) if codec else as_bytes(body)
    facts = np.zeros(FACTS, np.int64)
    fault = check_records(
        data, header.record_count, header.base_timestamp, 0 if keyed else -1, facts
    )
    if fault != SOUND:
        raise KafkaRecordError(KafkaFault(fault), int(facts[AT_FAULT]))
    return int(facts[LATEST])


@kernel
def check_records(
    data: BytesIn, count: int, base_timestamp: int, least_key: int, facts: NumbersOut
) -> int:
    """Return SOUND, or what is wrong with `count` records that should be all of `data`.

    A key's size is at least `least_key`: 0, or -1 where there need be none. The facts are the
    records' latest time, and the index of the one at fault.
    """
    facts[LATEST] = -1
    headers_left = int64(_HEADERS_MAX)
    index, position = int64(0), int64(0)
    while index < count:
        index, position = _skip_plain(
            data, position, index, count, base_timestamp, least_key, facts
        )
        if index == count:
            break
        facts[AT_FAULT] = index
        fault, position, delta, key, headers = _check_record(data, position, index, headers_left)
        if fault != SOUND:
            return fault
        if key < least_key:
            return NO_KEY
        if delta > _TIME_MAX - max(base_timestamp, 0) or delta < -_TIME_MAX - min(
            base_timestamp, 0
        ):
            return TIMESTAMP
        headers_left -= headers
        facts[LATEST] = max(facts[LATEST], base_timestamp + delta)
        index += 1
    facts[AT_FAULT] = index
    return SOUND if position == len(data) else TRAILING_BYTES


@helper
def _short(word: int) -> tuple[int, int]:
    """Return the signed number in the lowest bytes of a word, and how many bytes it takes.

    They are _LONG where there are more than three, and the number means nothing.
    """
    if word & 0x80 == 0:
        number, width = word & 0x7F, int64(1)
    elif word & 0x8000 == 0:
        number, width = word & 0x7F | word >> 1 & 0x3F80, int64(2)
    elif word & 0x800000 == 0:
        number, width = word & 0x7F | word >> 1 & 0x3F80 | word >> 2 & 0x1FC000, int64(3)
    else:
        number, width = int64(0), int64(_LONG)
    return (number >> 1) ^ -(number & 1), width


@helper
def _skip_plain(
    data: BytesIn, position: int, index: int, count: int, base_timestamp: int, least_key: int,
    facts: NumbersOut,
) -> tuple[int, int]:  # fmt: skip
    """Look at sound records up to one that `_check_record` has to judge; returns its index and
    position.

    It has headers, or numbers of more than three bytes, or too few bytes behind it, or is not
    sound. Few are, and the others take half of the time here.
    """
    latest = facts[LATEST]
    last = len(data) - _HEAD_ROOM
    if not -_TIME_MAX // 2 < base_timestamp < _TIME_MAX // 2:
        return index, position
    while index < count and position <= last:
        size, widths = _short(int64(load_word(data, position)))
        at = position + widths
        end = at + size
        at += 1
        delta, width = _short(int64(load_word(data, at)))
        widths |= width
        at += width
        offset, width = _short(int64(load_word(data, at)))
        widths |= width
        at += width
        key, width = _short(int64(load_word(data, at)))
        widths |= width
        at += width + max(key, 0)
        if at >= end or end + _WORD > len(data) or key < least_key:
            break
        value, width = _short(int64(load_word(data, at)))
        at += width + max(value, 0)
        if at + 1 != end or offset != index or value < -1 or (widths | width) & _LONG:
            break
        if int64(load_word(data, at)) & 0xFF:
            break
        latest = max(latest, base_timestamp + delta)
        index += 1
        position = end
    facts[LATEST] = latest
    return index, position


@helper
def _check_record(
    data: BytesIn, position: int, index: int, headers_left: int
) -> tuple[int, int, int, int, int]:
    """Return what is wrong with a record, its end, timestamp delta, key's size and headers."""
    nothing = int64(0)
    size, position = _read_int(data, position, len(data))
    if position == MALFORMED or size < 1 or size > len(data) - position:
        return STRUCTURE, nothing, nothing, nothing, nothing
    end = position + size
    # The attributes byte, which is unused, is skipped.
    number, position = read_varint(data, position + 1, end)
    delta = ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)
    offset, position = _read_int(data, position, end)
    key, position = _skip_span(data, position, end)
    _, position = _skip_span(data, position, end)
    headers, position = _read_int(data, position, end)
    if position == MALFORMED or headers < 0:
        return STRUCTURE, nothing, nothing, nothing, nothing
    if offset != index:
        return OFFSET_DELTA, nothing, nothing, nothing, nothing
    if headers > headers_left:
        return MANY_HEADERS, nothing, nothing, nothing, nothing
    if _headers_end(data, position, end, headers) != end:
        return STRUCTURE, nothing, nothing, nothing, nothing
    return SOUND, end, delta, key, headers


@helper
def _headers_end(data: BytesIn, position: int, end: int, count: int) -> int:
    """Return the position behind so many headers, or MALFORMED; a name is not null."""
    for _ in range(count):
        size, position = _skip_span(data, position, end)
        if position == MALFORMED or size < 0:
            return int64(MALFORMED)
        _, position = _skip_span(data, position, end)
        if position == MALFORMED:
            return int64(MALFORMED)
    return position


@helper
def _skip_span(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Return the size of a nullable byte string and the position behind it, or MALFORMED."""
    size, position = _read_int(data, position, end)
    if position == MALFORMED or size < -1 or size > end - position:
        return int64(0), int64(MALFORMED)
    return size, position + max(size, 0)


@helper
def _read_int(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read a signed number of at most 5 bytes, all of them before `end`, as `read_varint`."""
    number, after = read_varint(data, position, min(end, position + _INT_BYTES))
    return (number >> 1) ^ -(number & 1), after
