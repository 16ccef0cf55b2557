"""Builds Kafka record batches from a few records: what a person types, not a stream.

Batches are read, and converted in bulk, by `penstock.records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.log.header import Magic, build_header

if TYPE_CHECKING:
    from collections.abc import Sequence


class Record(NamedTuple):
    """One record; None for a key or a value is Kafka's null. The timestamp is in milliseconds."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0


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
