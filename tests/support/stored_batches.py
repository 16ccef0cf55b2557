"""Stored batches, built by other libraries or field by field, and read back as plain records."""

from __future__ import annotations

import ctypes
import mmap
import struct
from typing import TYPE_CHECKING, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from fastcrc.crc32 import iscsi as crc32c
from xxhash import xxh3_64_intdigest

from penstock.log.header import ATTRIBUTE_CHUNK, HEADER_SIZE, Magic, build_header, stamp, walk
from penstock.records.pulsar.metadata_pb2 import MessageMetadata, SingleMessageMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.records.columns import Columns
    from penstock.session import Buffer

TIME = 1_700_000_000_000_000
Headers = tuple[tuple[bytes, bytes | None], ...]


class Record(NamedTuple):
    """What a test says about one record; the time is microseconds since 1970."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    time: int = TIME


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


def own(found: list[Record]) -> list[Record]:
    """The records without the headers that say what only their own protocol could."""
    return [
        record._replace(
            headers=tuple(pair for pair in record.headers if not pair[0].startswith(b"penstock."))
        )
        for record in found
    ]


def join(batches: Iterable[Buffer]) -> bytes:
    """Return converted batches as one run."""
    return b"".join(bytes(batch) for batch in batches)


def at_offset(batch: Buffer, offset: int) -> bytes:
    """Return a batch as the log stores it at an offset."""
    stored = bytearray(batch)
    stamp(stored, offset, 0)
    return bytes(stored)


def kafka_batch(records: Sequence[Record], offset: int = 0, codec: int = 0) -> bytes:
    """A batch as aiokafka builds it; the times are cut to milliseconds."""
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


def pulsar_batch(body: bytes, offset: int = 0, count: int = 1) -> bytes:
    """The stored batch of one entry."""
    times = {"base_timestamp": TIME // 1000, "max_timestamp": TIME // 1000}
    return at_offset(build_header(Magic.PULSAR, body, record_count=count, **times) + body, offset)


def chunk_batch(parts: Sequence[bytes], index: int, uuid: str = "maker-1") -> bytes:
    """One of the batches that a message in chunks is."""
    fields = {
        "uuid": uuid,
        "chunk_id": index,
        "num_chunks_from_msg": len(parts),
        "total_chunk_msg_size": sum(map(len, parts)),
    }
    body = entry(metadata(**fields), parts[index])
    times = {"base_timestamp": TIME // 1000, "max_timestamp": TIME // 1000}
    header = build_header(Magic.PULSAR, body, record_count=1, attributes=ATTRIBUTE_CHUNK, **times)
    return bytes(header) + body


def metadata(**fields: object) -> MessageMetadata:
    """The metadata of a producer named `maker`, whose first message was published at TIME."""
    required = {"producer_name": "maker", "sequence_id": 5, "publish_time": TIME // 1000}
    return MessageMetadata(**(required | fields))


def batched(messages: Sequence[tuple[SingleMessageMetadata, bytes]]) -> bytes:
    """The payload of an entry that is a batch."""
    parts = []
    for single, payload in messages:
        single.payload_size = len(payload)
        encoded = single.SerializeToString()
        parts += [len(encoded).to_bytes(4, "big"), encoded, payload]
    return b"".join(parts)


def entries(batches: bytes) -> list[tuple[MessageMetadata, bytes]]:
    """Metadata and payload of every entry, parsed by protobuf."""
    found = []
    for position, header in walk(batches):
        body = batches[position + HEADER_SIZE : position + header.size]
        assert body[:2] == b"\x0e\x01"
        end = 10 + int.from_bytes(body[6:10], "big")
        found.append((MessageMetadata.FromString(body[10:end]), body[end:]))
    return found


def singles(payload: bytes) -> list[tuple[SingleMessageMetadata, bytes]]:
    messages, position = [], 0
    while position < len(payload):
        end = position + 4 + int.from_bytes(payload[position : position + 4], "big")
        message = SingleMessageMetadata.FromString(payload[position + 4 : end])
        position = end + message.payload_size
        messages.append((message, payload[end:position]))
    return messages


def iggy_body(
    records: Sequence[Record], *, ids: Sequence[int] = (), kinds: int = 0x21, deltas: int = 0
) -> bytes:
    """A batch as an Iggy producer sends it; `kinds` are those of every header."""
    origin = min(record.time for record in records)
    frames = []
    for index, record in enumerate(records):
        block = b"".join(_entry(name, value or b"", kinds) for name, value in record.headers)
        if record.key is not None:
            block += _entry(b"penstock.key", record.key, 0x21)
        payload = record.value or b""
        number = ids[index] if ids else 0
        fields = (index + deltas, record.time - origin, len(block), len(payload), 0)
        frame = number.to_bytes(16, "little") + struct.pack("<IIIIQ", *fields) + payload + block
        frames.append(struct.pack("<Q", xxh3_64_intdigest(frame)) + frame)
    size = 256 + sum(map(len, frames))
    head = struct.pack("<QQQQQ", 0, 0, 0, origin, size)
    count = struct.pack("<I", len(frames))
    checksum = xxh3_64_intdigest(head + count + b"".join(frame[:8] for frame in frames))
    header = head + struct.pack("<Q", checksum) + count
    return header.ljust(256, b"\0") + b"".join(frames)


def iggy_batch(body: bytes, offset: int = 0, count: int = 1) -> bytes:
    """The stored batch of an Iggy body."""
    times = {"base_timestamp": TIME // 1000, "max_timestamp": TIME // 1000}
    return at_offset(build_header(Magic.IGGY, body, record_count=count, **times) + body, offset)


def _entry(name: bytes, value: bytes, kinds: int) -> bytes:
    head = struct.pack("<BI", kinds >> 4, len(name)) + name
    return head + struct.pack("<BI", kinds & 15, len(value)) + value


class GuardedMemory:
    """Memory whose end is the end of what the process may read: a read past it kills the test."""

    def __init__(self, pages: int = 16) -> None:
        page = mmap.PAGESIZE
        self._size = pages * page
        self._memory = mmap.mmap(-1, self._size + page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(address + self._size), page, 0) == 0

    def place(self, data: bytes) -> memoryview:
        """Return `data` in memory that ends where it may not be read on."""
        view = memoryview(self._memory)[self._size - len(data) : self._size]
        view[:] = data
        return view
