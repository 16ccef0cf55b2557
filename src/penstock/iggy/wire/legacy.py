"""The codec of the two older dialects' framing: a length and a code, a status and a length.

Nothing but PING is served in them yet: every other command is answered with 'feature unavailable'.
A frame of today's dialect begins with 16 zero bytes, and one of these with a length of 4 or more,
so the first four bytes tell them apart.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_LEGACY_REQUEST_BYTES

if TYPE_CHECKING:
    from penstock.iggy.wire.message import MessageT
    from penstock.iggy.wire.replies import Reply
    from penstock.session import Buffer, Buffers

_LENGTH: Final = struct.Struct("<I")
_REQUEST: Final = struct.Struct("<II")
_REPLY: Final = struct.Struct("<II")
_CODE_SIZE: Final = 4


def is_legacy(head: Buffer) -> bool:
    """Whether these first four bytes belong to one of the older dialects."""
    return any(head[:4])


class LegacyCodec:
    """A `penstock.iggy.wire.codec.Codec`; what it remembers of a request is its command's code."""

    version: Final = 0
    """What clients of that time speak is not known."""
    is_served: Final = False

    def frame_size(self, head: Buffer) -> int | None:
        if len(head) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(head)
        if not _CODE_SIZE <= length <= _CODE_SIZE + IGGY_LEGACY_REQUEST_BYTES:
            raise IggyError(ErrorCode.INVALID_COMMAND, f"a frame of {length} bytes")
        return int(length) + _LENGTH.size

    def parse(self, frame: memoryview) -> int:
        return int(_REQUEST.unpack_from(frame)[1])

    def command(self, asked: int) -> Command:
        if asked != Command.PING:
            raise IggyError(ErrorCode.FEATURE_UNAVAILABLE, f"code {asked}")
        return Command.PING

    def decode(self, asked: int, kind: type[MessageT]) -> MessageT:
        assert asked == Command.PING
        return kind.decode(b"")

    def repetition(self, asked: int) -> None:
        del asked  # No request has a number.

    def encode(self, asked: int, reply: Reply) -> Buffers:
        assert asked == Command.PING
        assert reply is None
        return [_REPLY.pack(ErrorCode.OK, 0)]

    def encode_error(self, asked: int, error: IggyError) -> Buffers:
        del asked  # An answer names no request: they are answered in order.
        return [_REPLY.pack(error.code, 0)]

    def addressee(self, asked: int) -> bytes:
        del asked
        return b""

    def encode_stale(self, addressee: bytes) -> Buffers:
        del addressee
        return [_REPLY.pack(ErrorCode.STALE_CLIENT, 0)]
