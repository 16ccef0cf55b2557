"""Pulsar messages that were too large for one entry: their chunks, and the whole of them.

A chunk is an entry, and so a batch of one record with an offset of its own. To the other protocols
the message is one record at the offset of its last chunk; the offsets of the others are a gap.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c
from google.protobuf.message import DecodeError

from penstock.log.header import HEADER_SIZE, Magic, build_header, read_header, stamp
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.metadata import MessageMetadata

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_CHECKSUM_MAGIC: Final = b"\x0e\x01"
_CHECKSUM_SIZE: Final = 6
_SIZE: Final = struct.Struct(">I")


class ChunkInfo(NamedTuple):
    """Which part of which message a chunk is; `chunk` counts from 0 to `chunks` - 1."""

    uuid: str
    chunk: int
    chunks: int
    total_size: int
    """Bytes of the whole message as it was cut, which is after its compression."""


def is_chunk(batch: Buffer) -> ChunkInfo | None:
    """Return what a stored batch is a part of, or None for anything else.

    Raises MalformedBatchError for a Pulsar entry whose metadata can't be read.
    """
    header = read_header(batch)
    if header.magic != Magic.PULSAR:
        return None
    metadata, _ = _parse(memoryview(batch), header)
    if metadata.num_chunks_from_msg < 2:
        return None
    sizes = (metadata.chunk_id, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size)
    return ChunkInfo(metadata.uuid, *sizes)


def join_chunks(batches: Sequence[Buffer]) -> bytes:
    """Return the batch of the whole message, at the offset of its last chunk.

    `batches` are all its chunks in order. Raises MalformedBatchError where they are not.
    """
    chunks = [is_chunk(batch) for batch in batches]
    first, last = chunks[0], read_header(batches[-1])
    wanted = [
        first and first._replace(chunk=index) for index in range(first.chunks if first else 1)
    ]
    if first is None or chunks != wanted:
        raise _malformed(last, "these are not the chunks of one message")
    parsed = [_parse(memoryview(batch), read_header(batch)) for batch in batches]
    payload = b"".join(part for _, part in parsed)
    if len(payload) != first.total_size:
        raise _malformed(last, f"its chunks have {len(payload)} bytes, not {first.total_size}")
    metadata = parsed[0][0]
    for field in ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id"):
        metadata.ClearField(field)
    return _batch(metadata, payload, last)


def _batch(metadata: MessageMetadata, payload: bytes, last: BatchHeader) -> bytes:
    encoded = metadata.SerializeToString()
    summed = _SIZE.pack(len(encoded)) + encoded + payload
    body = _CHECKSUM_MAGIC + _SIZE.pack(crc32c(summed)) + summed
    times = {"base_timestamp": last.base_timestamp, "max_timestamp": last.max_timestamp}
    header = build_header(Magic.PULSAR, body, record_count=1, **times)
    stamp(header, last.base_offset, last.leader_epoch)
    return bytes(header) + body


def _parse(batch: memoryview, header: BatchHeader) -> tuple[MessageMetadata, memoryview]:
    entry = batch[HEADER_SIZE : header.size]
    if bytes(entry[:2]) == _CHECKSUM_MAGIC:
        entry = entry[_CHECKSUM_SIZE:]
    if len(entry) < _SIZE.size:
        raise _malformed(header, "an entry without metadata")
    end = _SIZE.size + _SIZE.unpack_from(entry)[0]
    try:
        metadata = MessageMetadata.FromString(bytes(entry[_SIZE.size : end]))
    except DecodeError as error:
        raise _malformed(header, f"its metadata can't be parsed: {error}") from error
    if end > len(entry) or not metadata.IsInitialized():
        raise _malformed(header, "its metadata is cut off")
    return metadata, entry[end:]


def _malformed(header: BatchHeader, reason: str) -> MalformedBatchError:
    return MalformedBatchError(reason, header.base_offset, header.next_offset)
