"""An entry: what a producer sends as one unit, what the log stores, and what a consumer is given.

    [0e01 u32 crc32c] u32 metadata size | MessageMetadata | payload

The checksum covers everything from the metadata's size on. An entry without `0e01` carries none.
`decode` reads many at once into tables; this is for one. Its messages are declared in
`metadata.proto` (`make protos`).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c
from google.protobuf.message import DecodeError

from penstock.records.pulsar.metadata_pb2 import MessageMetadata

CHECKSUM_MAGIC: Final = 0x0E01
CHECKSUM_AT: Final = 2
CHECKSUM_SIZE: Final = 6
"""Bytes of the checksum with the magic in front of it."""
SMALLEST_MESSAGE: Final = 6
"""Bytes of the smallest message in a batch: its metadata's size, and a payload size."""

_CHECKSUM: Final = struct.Struct(">HI")
_SIZE: Final = struct.Struct(">I")


class MalformedEntryError(Exception):
    """The bytes are no entry: a size runs over the end, or metadata can't be parsed."""


class ChecksumMismatchError(Exception):
    """The entry's bytes are not those that its producer calculated the checksum over."""


class Numbers(NamedTuple):
    """The sequence numbers that one entry's messages have from their producer."""

    first: int
    last: int
    passed: int
    """Up to here no other entry of the producer has one: up to the last number where the entry has
    them all, else the first one. Batches by key have numbers that lie between those of others.
    """

    @classmethod
    def of(cls, first: int, highest: int, count: int) -> Numbers:
        """Return the numbers of `count` messages, of which a client may say the highest, else 0.

        One that does not say it numbers messages one by one, but may have put those between into
        other batches.
        """
        if count == 1 and not highest:
            return cls(first, first, first)
        last = first + count - 1
        return cls(first, highest or last, last if last == highest else first)


class Numbered(NamedTuple):
    """Who sent an entry, and the numbers by which it is found to be sent again."""

    producer_name: str
    numbers: Numbers


class Entry(NamedTuple):
    """An entry's metadata and payload; the payload is a view of what was parsed."""

    metadata: MessageMetadata
    payload: memoryview

    @property
    def is_batch(self) -> bool:
        """Presence means batch: a batch of one message is legal and differs from a message."""
        return bool(self.metadata.HasField("num_messages_in_batch"))

    @property
    def is_chunk(self) -> bool:
        """Whether this is one of several parts of a message (PIP-37)."""
        return bool(self.metadata.num_chunks_from_msg > 1)

    @property
    def is_part(self) -> bool:
        """Whether it is a chunk that does not complete its message, and so has no number."""
        return self.is_chunk and self.metadata.chunk_id != self.metadata.num_chunks_from_msg - 1

    @property
    def message_count(self) -> int:
        return int(self.metadata.num_messages_in_batch)


def read_entry(entry: memoryview) -> Entry:
    """Check and parse an entry from a producer.

    Raises ChecksumMismatchError, and MalformedEntryError also where the entry says that it holds
    more messages than fit into it: offsets are given by that count.
    """
    parsed = _parse(_verified(entry))
    _check_count(parsed)
    return parsed


def parse_entry(entry: memoryview) -> Entry:
    """Parse a stored entry, whose checksum was checked when it came.

    Raises MalformedEntryError.
    """
    return _parse(without_checksum(entry))


def numbered_message(entry: memoryview) -> Numbered | None:
    """Return who sent a stored entry and its numbers; None of a part."""
    try:
        parsed = parse_entry(entry)
    except MalformedEntryError:
        return None
    if parsed.is_part:
        return None
    metadata = parsed.metadata
    count = parsed.message_count if parsed.is_batch else 1
    numbers = Numbers.of(metadata.sequence_id, metadata.highest_sequence_id, count)
    return Numbered(metadata.producer_name, numbers)


def build_entry(metadata: MessageMetadata, payload: bytes) -> bytearray:
    """Return the entry of a message, or of a batch of messages, with its checksum."""
    encoded = metadata.SerializeToString()
    summed = _SIZE.pack(len(encoded)) + encoded + payload
    return bytearray(_CHECKSUM.pack(CHECKSUM_MAGIC, crc32c(summed)) + summed)


def without_checksum(entry: memoryview) -> memoryview:
    """Return an entry for a client that knows no checksums, a view of what was given."""
    if len(entry) >= _CHECKSUM.size and _CHECKSUM.unpack_from(entry)[0] == CHECKSUM_MAGIC:
        return entry[_CHECKSUM.size :]
    return entry


def _verified(entry: memoryview) -> memoryview:
    if len(entry) < _CHECKSUM.size:
        return entry
    magic, expected = _CHECKSUM.unpack_from(entry)
    if magic != CHECKSUM_MAGIC:
        return entry
    summed = entry[_CHECKSUM.size :]
    found = crc32c(summed)
    if found != expected:
        raise ChecksumMismatchError(f"checksum {found:#010x}, expected {expected:#010x}")
    return summed


def _parse(unsummed: memoryview) -> Entry:
    if len(unsummed) < _SIZE.size:
        raise MalformedEntryError("an entry without metadata")
    (size,) = _SIZE.unpack_from(unsummed)
    end = _SIZE.size + size
    if end > len(unsummed):
        raise MalformedEntryError(f"metadata of {size} bytes is cut off by the end of the entry")
    try:
        metadata = MessageMetadata.FromString(unsummed[_SIZE.size : end])  # type: ignore[arg-type]
    except DecodeError as error:
        raise MalformedEntryError(f"metadata can't be parsed: {error}") from error
    if not metadata.IsInitialized():
        raise MalformedEntryError("metadata without producer name, sequence id or publish time")
    return Entry(metadata, unsummed[end:])


def _check_count(entry: Entry) -> None:
    if not entry.is_batch:
        return
    room = max(len(entry.payload), entry.metadata.uncompressed_size)
    if not 1 <= entry.message_count <= room // SMALLEST_MESSAGE:
        raise MalformedEntryError(f"{entry.message_count} messages in a batch of {room} bytes")
