"""The batch: what a producer sends, what the log keeps and what a poll hands out are one layout.

A 256-byte header, then frames: a 48-byte header, the payload and the user headers of one message.
Whole frames may be taken out and put behind a fresh header without touching them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.session import Buffer

BATCH_HEADER_SIZE: Final = 256
FRAME_HEADER_SIZE: Final = 48
PAYLOAD_SIZE_MAX: Final = 64_000_000
USER_HEADERS_SIZE_MAX: Final = 100_000

_HEADER: Final = struct.Struct("<QQQQQQI")
_CHECKSUMMED: Final = struct.Struct("<QQQQQI")
_FRAME: Final = struct.Struct("<8s16sIIIIQ")


class BatchHeader(NamedTuple):
    """The fields of a batch's header. Times are microseconds since 1970."""

    partition_id: int
    base_offset: int
    base_timestamp: int
    """When the server took the batch; 0 from a producer."""
    origin_timestamp: int
    """The earliest time that the producer gave to a message."""
    batch_length: int
    """Bytes of header and frames."""
    batch_checksum: int
    message_count: int

    def checksummed(self) -> bytes:
        """The bytes of the header that its checksum covers; frame checksums follow them."""
        return _CHECKSUMMED.pack(*self[:5], self.message_count)

    def encode(self) -> bytearray:
        """Return the 256 bytes."""
        out = bytearray(BATCH_HEADER_SIZE)
        _HEADER.pack_into(out, 0, *self)
        return out


class Frame(NamedTuple):
    """One message's place in its batch. Times are microseconds after `origin_timestamp`."""

    start: int
    checksum: bytes
    id: bytes
    offset_delta: int
    timestamp_delta: int
    user_headers_size: int
    payload_size: int

    @property
    def end(self) -> int:
        return self.start + FRAME_HEADER_SIZE + self.payload_size + self.user_headers_size


def read_batch_header(batch: Buffer) -> BatchHeader:
    """Read the header and check it against the buffer's size; raises IggyError."""
    if len(batch) < BATCH_HEADER_SIZE:
        raise IggyError(ErrorCode.INVALID_MESSAGES_SIZE, f"a batch of {len(batch)} bytes")
    header = BatchHeader._make(_HEADER.unpack_from(batch))
    if header.batch_length != len(batch):
        raise IggyError(
            ErrorCode.INVALID_MESSAGES_SIZE,
            f"a batch says {header.batch_length} bytes and has {len(batch)}",
        )
    return header


def frames(batch: Buffer) -> Iterator[Frame]:
    """Yield the frames of a whole batch; raises IggyError where one does not fit."""
    position, end = BATCH_HEADER_SIZE, len(batch)
    while position < end:
        if end - position < FRAME_HEADER_SIZE:
            raise IggyError(ErrorCode.TOO_SMALL_MESSAGE, f"{end - position} bytes left over")
        *fields, reserved = _FRAME.unpack_from(batch, position)
        frame = Frame(position, *fields)
        if reserved:
            raise IggyError(ErrorCode.INVALID_RESERVED_FIELD)
        if frame.end > end:
            raise IggyError(ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH, "a message leaves its batch")
        yield frame
        position = frame.end
