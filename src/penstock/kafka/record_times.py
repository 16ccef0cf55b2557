"""Finds a record by its time within one Kafka batch.

Only the first few bytes of each record are looked at, which needs none of the compiled functions of
`penstock.records`: a look-up never waits for those to be compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import DECODED_ROWS
from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    read_header,
)
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_VARINT_BITS_MAX: Final = 63
_TIMESTAMP_MAX: Final = (1 << 63) - 1


class RecordTime(NamedTuple):
    """A record's timestamp, in milliseconds, and its offset."""

    timestamp: int
    offset: int


def first_not_before(batch: Buffer, timestamp: int, start: int = 0) -> RecordTime | None:
    """Return the first record of a stored batch, from the offset `start` on, whose timestamp is at
    least `timestamp`.

    None where no record is as late, whatever the batch's header promises. May take a while for a
    batch of very many records. Raises MalformedBatchError.
    """
    header = read_header(batch)
    if header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
        late_enough = header.max_timestamp >= timestamp
        first = max(start, header.base_offset)
        return RecordTime(header.max_timestamp, first) if late_enough else None
    is_whole = start <= header.base_offset and not _is_compacted(header)
    if header.base_timestamp >= timestamp and is_whole:
        # The first record's time is the base, so the records need not be looked at.
        return RecordTime(header.base_timestamp, header.base_offset)
    if header.record_count > DECODED_ROWS:
        raise MalformedBatchError(f"{header.record_count} records, over {DECODED_ROWS}")
    try:
        return _scan(header, _records(header, batch), timestamp, start)
    except IndexError as error:
        raise MalformedBatchError("a record ends outside of its batch") from error


def _is_compacted(header: BatchHeader) -> bool:
    """Whether the first record may be gone, or something else be in the base timestamp."""
    return not header.is_full or bool(header.attributes & ATTRIBUTE_DELETE_HORIZON)


def _records(header: BatchHeader, batch: Buffer) -> memoryview:
    records = memoryview(batch)[HEADER_SIZE : header.size]
    codec = header.attributes & ATTRIBUTE_COMPRESSION
    if codec == 0:
        return records
    # Loading the codecs takes a while, which only who needs them has to wait for.
    from penstock.records.kafka.compression import inflate_kafka  # noqa: PLC0415

    return inflate_kafka(codec, records).data


def _scan(
    header: BatchHeader, records: memoryview, timestamp: int, start_offset: int
) -> RecordTime | None:
    position = 0
    for _ in range(header.record_count):
        size, start = _read_varint(records, position)
        # One byte of attributes comes before the time.
        delta, after = _read_varint(records, start + 1)
        if header.base_timestamp + delta >= timestamp:
            offset_delta, _ = _read_varint(records, after)
            if header.base_offset + offset_delta >= start_offset:
                return _checked(header, header.base_timestamp + delta, offset_delta)
        if size < 0:
            raise MalformedBatchError(f"a record of {size} bytes")
        position = start + size
    return None


def _checked(header: BatchHeader, timestamp: int, offset_delta: int) -> RecordTime:
    if timestamp > _TIMESTAMP_MAX or not 0 <= offset_delta <= header.last_offset_delta:
        raise MalformedBatchError(f"a record at time {timestamp} and place {offset_delta}")
    return RecordTime(timestamp, header.base_offset + offset_delta)


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the zigzag number at `position` and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > _VARINT_BITS_MAX:
            raise MalformedBatchError("a number is longer than 64 bits")
