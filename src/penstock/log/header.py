"""The header that every batch of every protocol begins with.

It is the header of Kafka's record batch v2: 61 bytes, big-endian (KIP-98). The magic byte says in
which protocol's encoding the body follows. Offsets, times, sequences, checksums and recovery need
the header only, so they cost one step a batch whatever the batch holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

if TYPE_CHECKING:
    from penstock.session import Buffer

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
PREFIX_SIZE: Final = 12
"""Bytes that `length` does not count: the base offset and the length itself."""

_PREFIX: Final = struct.Struct(">qi")
_STAMP: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
CRC_START: Final = 21
"""First byte that the checksum covers; it covers all the rest of the batch."""

_ATTRIBUTES_LOW_AT: Final = 22
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AT: Final = 43

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

ATTRIBUTE_COMPRESSION: Final = 0x07
ATTRIBUTE_LOG_APPEND_TIME: Final = 0x08
ATTRIBUTE_TRANSACTIONAL: Final = 0x10
ATTRIBUTE_CONTROL: Final = 0x20
ATTRIBUTE_DELETE_HORIZON: Final = 0x40
"""Set by compaction: the base timestamp is when its tombstones and markers may go (KIP-534)."""
ATTRIBUTE_CHUNK: Final = 0x100
"""Ours, on a Pulsar entry that is one part of a larger message (PIP-37)."""
ATTRIBUTE_DELAYED: Final = 0x200
"""Ours, on a Pulsar entry that says from when on it is to be delivered (PIP-26)."""


class Magic(IntEnum):
    """Whose encoding a batch's body is in."""

    KAFKA = 2
    IGGY = 0x49
    PULSAR = 0x50


class BatchHeader(NamedTuple):
    """One batch's header. Times are milliseconds since 1970; `length` counts from byte 12."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + PREFIX_SIZE

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_full(self) -> bool:
        """Whether it has a record for each of its offsets: compaction leaves out some."""
        return self.record_count == self.last_offset_delta + 1

    @property
    def native_magic(self) -> int | None:
        """The encoding whose readers get it as it is stored; None of an entry of Pulsar in which
        messages are marked as compacted out.
        """
        return None if self.magic == Magic.PULSAR and not self.is_full else self.magic

    @property
    def covered_sum(self) -> int:
        """The checksum of that part of the header which the batch's own checksum covers."""
        return crc32c(HEADER.pack(*self)[CRC_START:])


_new_tuple: Final = tuple.__new__
"""As `BatchHeader._make`, without counting the values: their number is the format's."""


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; raises struct.error where fewer than 61 bytes are left."""
    return _new_tuple(BatchHeader, HEADER.unpack_from(buffer, position))


def walk(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of every whole batch in `buffer`; a cut-off end is left out.

    The lengths are trusted only as far as they stay inside the buffer; checksums are not looked at.
    """
    position, end = 0, len(memoryview(buffer))
    unpack = HEADER.unpack_from
    while position + HEADER_SIZE <= end:
        header = _new_tuple(BatchHeader, unpack(buffer, position))
        size = header.length + PREFIX_SIZE
        following = position + size
        if size < HEADER_SIZE or following > end:
            return
        yield position, header
        position = following


def checksum_matches(batch: Buffer) -> bool:
    """Whether the stored checksum of one whole batch fits its bytes."""
    view = memoryview(batch)
    (stored,) = _CRC.unpack_from(view, _CRC_AT)
    return bool(crc32c(view[CRC_START:]) == stored)


def stamp(batch: Buffer, base_offset: int, leader_epoch: int) -> None:
    """Write offset and epoch into a batch in place; the checksum covers neither."""
    _, length = _PREFIX.unpack_from(batch)
    _STAMP.pack_into(batch, 0, base_offset, length, leader_epoch)


def set_max_timestamp(batch: Buffer, max_timestamp: int) -> None:
    """Write the latest time into a whole batch in place, and its checksum anew."""
    view = memoryview(batch)
    _MAX_TIMESTAMP.pack_into(view, _MAX_TIMESTAMP_AT, max_timestamp)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[CRC_START:]))


def stamp_append_time(parts: Sequence[Buffer], timestamp: int) -> BatchHeader:
    """Make `timestamp` the time of all messages of a whole batch, as LogAppendTime asks (KIP-32).

    Written in place, and the checksum anew; returns the header as it is now. `parts[0]` starts with
    it. What the messages themselves say stays.
    """
    header = memoryview(parts[0])
    header[_ATTRIBUTES_LOW_AT] |= ATTRIBUTE_LOG_APPEND_TIME
    _MAX_TIMESTAMP.pack_into(header, _MAX_TIMESTAMP_AT, timestamp)
    crc = crc32c(header[CRC_START:])
    for part in parts[1:]:
        crc = crc32c(part, crc)
    _CRC.pack_into(header, _CRC_AT, crc)
    return read_header(header)


def set_transaction(batch: Buffer, producer_id: int, producer_epoch: int) -> None:
    """Make a whole batch one of a producer's transaction in place, its checksum anew."""
    view = memoryview(batch)
    view[_ATTRIBUTES_LOW_AT] |= ATTRIBUTE_TRANSACTIONAL
    _PRODUCER.pack_into(view, _PRODUCER_AT, producer_id, producer_epoch)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[CRC_START:]))


def append_time(batch: Buffer) -> int:
    """Return the time that `stamp_append_time` gave a batch, NO_TIMESTAMP where it gave none."""
    view = memoryview(batch)
    if not view[_ATTRIBUTES_LOW_AT] & ATTRIBUTE_LOG_APPEND_TIME:
        return NO_TIMESTAMP
    return int(_MAX_TIMESTAMP.unpack_from(view, _MAX_TIMESTAMP_AT)[0])


def build_header(
    magic: int,
    body: Buffer,
    *,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    last_offset_delta: int | None = None,
) -> bytearray:
    """Return a header for `body`, checksum included, that the log has yet to stamp.

    Without `last_offset_delta` the records' offsets follow one another.
    """
    if last_offset_delta is None:
        last_offset_delta = record_count - 1
    length = HEADER_SIZE - PREFIX_SIZE + len(memoryview(body))
    header = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        header,
        0,
        *(0, length, 0, magic, 0, attributes, last_offset_delta, base_timestamp, max_timestamp),
        *(producer_id, producer_epoch, base_sequence, record_count),
    )
    # The second argument continues a checksum, so header and body need not be joined.
    crc = crc32c(body, crc32c(memoryview(header)[CRC_START:]))
    _CRC.pack_into(header, _CRC_AT, crc)
    return header


def rebuilt_header(header: BatchHeader, body: Buffer) -> bytearray:
    """Return a header that says what `header` does, its place in the log too, in front of another
    body.
    """
    made = build_header(
        header.magic,
        body,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=header.attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        last_offset_delta=header.last_offset_delta,
    )
    stamp(made, header.base_offset, header.leader_epoch)
    return made


def build_gap(magic: int, start: int, end: int, leader_epoch: int) -> bytearray:
    """Return a batch without records that spans offsets: Kafka's own form of a place that held some
    before compaction.
    """
    gap = build_header(
        magic,
        b"",
        record_count=0,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        last_offset_delta=end - start - 1,
    )
    stamp(gap, start, leader_epoch)
    return gap
