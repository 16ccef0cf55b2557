"""The batch: what a producer sends, what the log keeps and what a poll hands out are one layout.

A 256-byte header, then frames: a 48-byte header, the payload and the user headers of one message.
Whole frames may be taken out and put behind a fresh header without touching them.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.session import Buffer

BATCH_HEADER_SIZE: Final = 256

_HEADER: Final = struct.Struct("<QQQQQQI")


class MessageForm(Enum):
    """How the messages of a send or of a poll lie in bytes."""

    BATCH = "today's batch"
    EARLY = "2023: id, user headers, payload, one message behind the other"
    WITHOUT_RESERVE = "0.5 and 0.6: 56 bytes, payload, user headers; keys have no kind"
    WITH_RESERVE = "0.7 and 0.8: 64 bytes, payload, user headers as today"

    __hash__ = object.__hash__  # There is one of each; Enum makes a number of its name each time.


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
