"""Builds and reads Kafka record batches of a few records: what a person types and looks at.

Streams of records are read, and converted in bulk, by `penstock.records`, whose compiled functions
take too long to load for a command that shows ten lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    Magic,
    build_header,
    walk,
)
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.log.header import BatchHeader
    from penstock.session import Buffer


class Record(NamedTuple):
    """One record; None for a key or a value is Kafka's null. The timestamp is in milliseconds."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0


class StoredRecord(NamedTuple):
    """A record with the place it has in its partition."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def encode_batch(records: Sequence[Record]) -> bytearray:
    """Return one uncompressed batch of at least one record."""
    base_timestamp = records[0].timestamp_ms
    body = bytearray()
    for offset_delta, record in enumerate(records):
        body += _encode_record(record, offset_delta, record.timestamp_ms - base_timestamp)
    header = build_header(
        Magic.KAFKA,
        body,
        record_count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp_ms for record in records),
    )
    return header + body


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    fields = bytearray(1)
    fields += _varint(timestamp_delta) + _varint(offset_delta)
    fields += _sized(record.key) + _sized(record.value) + _varint(len(record.headers))
    for name, value in record.headers:
        fields += _sized(name.encode()) + _sized(value)
    return _varint(len(fields)) + fields


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Zigzag, base 128, little end first."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def decode_batches(batches: Buffer) -> Iterator[StoredRecord]:
    """Yield the records of whole batches, compressed or not. Raises MalformedBatchError."""
    view = memoryview(batches)
    for position, header in walk(view):
        if header.attributes & ATTRIBUTE_CONTROL:
            continue
        body = view[position + HEADER_SIZE : position + header.size]
        codec = header.attributes & ATTRIBUTE_COMPRESSION
        try:
            yield from _decode_records(header, _inflated(codec, body))
        except (IndexError, UnicodeDecodeError) as error:
            raise MalformedBatchError(
                "a record reaches outside of it", header.base_offset, header.next_offset
            ) from error


def _inflated(codec: int, body: memoryview) -> memoryview:
    if codec == 0:
        return body
    from penstock.records.kafka.compression import inflate_kafka  # noqa: PLC0415 (loads numpy)

    return inflate_kafka(codec, body).data


def _decode_records(header: BatchHeader, body: memoryview) -> Iterator[StoredRecord]:
    fields = _Fields(body)
    for _ in range(header.record_count):
        fields.varint()  # The record's size: what follows tells the same.
        fields.take(1)
        timestamp_ms = header.base_timestamp + fields.varint()
        if header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            timestamp_ms = header.max_timestamp
        offset = header.base_offset + fields.varint()
        key, value = fields.sized(), fields.sized()
        headers = [((fields.sized() or b"").decode(), fields.sized()) for _ in fields.count()]
        yield StoredRecord(offset, timestamp_ms, key, value, headers)


class _Fields:
    """Takes one field after the other; raises IndexError at the end."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise IndexError(end)
        taken = bytes(self._data[self._position : end])
        self._position = end
        return taken

    def varint(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self._data[self._position]
            self._position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
        raise IndexError(self._position)

    def sized(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)

    def count(self) -> range:
        return range(self.varint())
