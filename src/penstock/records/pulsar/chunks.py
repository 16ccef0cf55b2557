"""Pulsar messages that were too large for one entry: their chunks, and the whole of them.

A chunk is an entry, and so a batch of one record with an offset of its own. To the other protocols
the message is one record at the offset of its last chunk; the offsets of the others are a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.log.header import (
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    build_header,
    read_header,
    set_transaction,
    stamp,
)
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.entry import MalformedEntryError, build_entry, parse_entry

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.records.pulsar.entry import Entry
    from penstock.records.pulsar.metadata_pb2 import MessageMetadata
    from penstock.session import Buffer


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
    entry = _entry_of(batch, header)
    return _chunk_info(entry.metadata) if entry.is_chunk else None


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
    entries = [_entry_of(batch, read_header(batch)) for batch in batches]
    payload = b"".join(entry.payload for entry in entries)
    if len(payload) != first.total_size:
        raise _malformed(last, f"its chunks have {len(payload)} bytes, not {first.total_size}")
    metadata = entries[0].metadata
    for field in ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id"):
        metadata.ClearField(field)
    return _batch(build_entry(metadata, payload), last)


def _chunk_info(metadata: MessageMetadata) -> ChunkInfo:
    return ChunkInfo(
        uuid=metadata.uuid,
        chunk=metadata.chunk_id,
        chunks=metadata.num_chunks_from_msg,
        total_size=metadata.total_chunk_msg_size,
    )


def _batch(body: bytearray, last: BatchHeader) -> bytes:
    times = {"base_timestamp": last.base_timestamp, "max_timestamp": last.max_timestamp}
    attributes = last.attributes & ATTRIBUTE_LOG_APPEND_TIME
    header = build_header(Magic.PULSAR, body, record_count=1, attributes=attributes, **times)
    stamp(header, last.base_offset, last.leader_epoch)
    batch = header + body
    if last.attributes & ATTRIBUTE_TRANSACTIONAL:
        set_transaction(batch, last.producer_id, last.producer_epoch)
    return bytes(batch)


def _entry_of(batch: Buffer, header: BatchHeader) -> Entry:
    try:
        return parse_entry(memoryview(batch)[HEADER_SIZE : header.size])
    except MalformedEntryError as error:
        raise _malformed(header, str(error)) from error


def _malformed(header: BatchHeader, reason: str) -> MalformedBatchError:
    return MalformedBatchError(reason, header.base_offset, header.next_offset)
