"""The 256-byte headers in front of every body, in both directions."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.iggy.wire.commands import Operation
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_REQUEST_BYTES

if TYPE_CHECKING:
    from penstock.session import Buffer, Buffers

HEADER_SIZE: Final = 256
START_SIZE: Final = 52
"""Bytes up to the size field: what it takes to know where a frame ends."""

_SIZE_AT: Final = 48
_SIZE: Final = struct.Struct("<I")
_COMMAND_AT: Final = 60
_REQUEST: Final = struct.Struct("<16s16s QQ B7x Q 4x I56x")
_REQUEST_AT: Final = 128
_REPLY: Final = struct.Struct("<16s16x16s QQQQ B7x I")
_REPLY_AT: Final = 128
_WHOLE_REPLY: Final = struct.Struct("<48x I 8x B 67x 16s16x16s QQQQ B7x I 36x")
"""A reply's header in one piece: size, kind, then as `_REPLY`."""
_EVICTION: Final = struct.Struct("<16sII")
_EVICTION_AT: Final = 128


class FrameKind(IntEnum):
    """The header's command byte; all others are spoken between servers only."""

    REQUEST = 5
    REPLY = 8
    EVICTION = 13


_REPLY_KIND: Final = int(FrameKind.REPLY)


class EvictionReason(IntEnum):
    """Why the server ended a session."""

    NO_SESSION = 1
    CLIENT_RELEASE_TOO_LOW = 2
    CLIENT_RELEASE_TOO_HIGH = 3
    INVALID_REQUEST_OPERATION = 4
    INVALID_REQUEST_BODY = 5
    INVALID_REQUEST_BODY_SIZE = 6
    SESSION_TOO_LOW = 7
    SESSION_RELEASE_MISMATCH = 8
    INVALID_CREDENTIALS = 9
    INVALID_TOKEN = 10
    USER_INACTIVE = 11
    SESSION_ERROR = 12
    STALE_CLIENT = 13
    INCOMPATIBLE_PROTOCOL = 14
    MALFORMED_LOGIN = 15


class EvictedError(IggyError):
    """The session is over, and the client hears why; the versions are those that are served."""

    def __init__(self, reason: EvictionReason, *, version: int = 0, version_min: int = 0) -> None:
        super().__init__(ErrorCode.INVALID_SESSION, reason.name)
        self.reason = reason
        self.version = version
        self.version_min = version_min


class RequestHeader(NamedTuple):
    """What a request's header says."""

    client: bytes
    """16 bytes that the client chose for itself; not zero."""
    request_checksum: bytes
    timestamp: int
    request: int
    operation: int
    session: int
    code: int
    """The command's number where the operation is NON_REPLICATED; otherwise 0."""


class ReplyHeader(NamedTuple):
    """What a reply's header says."""

    request_checksum: bytes
    client: bytes
    op: int
    commit: int
    timestamp: int
    request: int
    operation: int
    status: int


def frame_size(head: Buffer) -> int | None:
    """Return the size of the frame that begins here, or None before START_SIZE bytes are there.

    Raises IggyError for a size under the header's, or over the limit.
    """
    if len(head) < START_SIZE:
        return None
    (size,) = _SIZE.unpack_from(head, _SIZE_AT)
    if not HEADER_SIZE <= size <= HEADER_SIZE + IGGY_REQUEST_BYTES:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"a frame of {size} bytes")
    return int(size)


def parse_request(frame: Buffer) -> RequestHeader:
    """Read the header of a whole frame; raises IggyError where it is no request."""
    if frame[_COMMAND_AT] != FrameKind.REQUEST:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"frame kind {frame[_COMMAND_AT]}")
    return RequestHeader(*_REQUEST.unpack_from(frame, _REQUEST_AT))


def build_request(header: RequestHeader, body: Buffer) -> list[Buffer]:
    """Return a request's parts: what a client sends."""
    out = _start(FrameKind.REQUEST, len(body))
    _REQUEST.pack_into(out, _REQUEST_AT, *header)
    return [out, body]


def build_reply(request: RequestHeader, body: Buffers = (), *, status: int = 0) -> Buffers:
    """Return the parts of the reply to `request`; the parts of `body` are not copied."""
    client, checksum, timestamp, number, operation, _, _ = request
    size = HEADER_SIZE + sum(map(len, body))
    head = _WHOLE_REPLY.pack(
        *(size, _REPLY_KIND, checksum, client, 0, 0, timestamp, number, operation, status)
    )
    return [head, *body]


def parse_reply(frame: Buffer) -> ReplyHeader:
    """Read the header of a whole reply; raises IggyError where it is none."""
    if frame[_COMMAND_AT] != FrameKind.REPLY:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"frame kind {frame[_COMMAND_AT]}")
    return ReplyHeader._make(_REPLY.unpack_from(frame, _REPLY_AT))


def build_eviction(
    client: bytes, reason: EvictionReason, *, version: int = 0, version_min: int = 0
) -> bytearray:
    """Return the frame that ends a session; the versions belong to INCOMPATIBLE_PROTOCOL."""
    out = _start(FrameKind.EVICTION, 0)
    _EVICTION.pack_into(out, _EVICTION_AT, client, version, version_min)
    out[-1] = reason
    return out


ACCEPTED: Final = bytes(4)
"""The result section of a success: no results. The reply's payload follows."""


def rejected(code: ErrorCode) -> bytes:
    """Return the result section that refuses: one result, of index 0."""
    return _REJECTED.pack(1, 0, code)


_REJECTED: Final = struct.Struct("<III")


def has_result_section(operation: int) -> bool:
    """Whether replies to this operation begin with a result section."""
    return operation in _WITH_RESULT_SECTION


_WITH_RESULT_SECTION: Final = frozenset(Operation) - {
    Operation.NON_REPLICATED,
    Operation.LOGOUT_USER,
    Operation.DELETE_SEGMENTS,
    Operation.SEND_MESSAGES,
}


def _start(kind: FrameKind, body_size: int) -> bytearray:
    out = bytearray(HEADER_SIZE)
    _SIZE.pack_into(out, _SIZE_AT, HEADER_SIZE + body_size)
    out[_COMMAND_AT] = kind
    return out
