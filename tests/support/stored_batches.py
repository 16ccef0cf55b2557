"""Stored batches, written by the clients' own libraries or by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fastcrc.crc32 import iscsi as crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from penstock.log.header import Magic, build_header, stamp
from penstock.records.pulsar_metadata import MessageMetadata, SingleMessageMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.records.columns import Columns


class Record(NamedTuple):
    """What a test says about one record; the time is microseconds since 1970."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    time: int = 1_700_000_000_000_000


def read(columns: Columns) -> list[Record]:
    """Return the columns as a test says them."""
    return [
        Record(
            columns.value(row),
            columns.key(row),
            tuple(columns.headers_of(row)),
            int(columns.timestamps[row]),
        )
        for row in range(len(columns))
    ]


def at_offset(batch: bytes | bytearray, offset: int) -> bytes:
    """Return a batch as the log stores it at an offset."""
    stored = bytearray(batch)
    stamp(stored, offset, 0)
    return bytes(stored)


def kafka_batch(records: Sequence[Record], offset: int = 0, codec: int = 0) -> bytes:
    """A batch as kafka-python builds it."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for index, record in enumerate(records):
        headers = [(name.decode(), value) for name, value in record.headers]
        builder.append(index, record.time // 1000, record.key, record.value, headers)
    return at_offset(builder.build(), offset)


def entry(metadata: MessageMetadata, payload: bytes, *, checksum: bool = True) -> bytes:
    """A Pulsar entry as a producer sends it."""
    encoded = metadata.SerializeToString()
    summed = len(encoded).to_bytes(4, "big") + encoded + payload
    head = b"\x0e\x01" + crc32c(summed).to_bytes(4, "big") if checksum else b""
    return head + summed


def pulsar_batch(body: bytes, offset: int = 0, count: int = 1, time_ms: int = 0) -> bytes:
    """The stored batch of one entry."""
    header = build_header(
        Magic.PULSAR, body, record_count=count, base_timestamp=time_ms, max_timestamp=time_ms
    )
    return at_offset(header + body, offset)


def batched(messages: Sequence[tuple[SingleMessageMetadata, bytes]]) -> bytes:
    """The payload of an entry that is a batch."""
    parts = []
    for metadata, payload in messages:
        metadata.payload_size = len(payload)
        encoded = metadata.SerializeToString()
        parts += [len(encoded).to_bytes(4, "big"), encoded, payload]
    return b"".join(parts)


def iggy_batch(body: bytes, offset: int = 0, count: int = 1) -> bytes:
    """The stored batch of an Iggy batch."""
    header = build_header(Magic.IGGY, body, record_count=count, base_timestamp=0, max_timestamp=0)
    return at_offset(header + body, offset)
