"""The framing of the two older dialects: a length and a code, a status and a length.

A frame of today's dialect begins with 16 zero bytes, and one of these with a length of 4 or more,
so the first four bytes tell them apart.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_LEGACY_REQUEST_BYTES

if TYPE_CHECKING:
    from penstock.session import Buffer

_LENGTH: Final = struct.Struct("<I")
_REQUEST: Final = struct.Struct("<II")
_REPLY: Final = struct.Struct("<II")
_CODE_SIZE: Final = 4


def is_legacy(head: Buffer) -> bool:
    """Whether these first bytes belong to one of the older dialects."""
    return any(head[:4])


def frame_size(head: Buffer) -> int | None:
    """Return the size of the frame that begins here, or None before its length is there.

    Raises IggyError for a length under a code's, or over the limit.
    """
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(head)
    if not _CODE_SIZE <= length <= _CODE_SIZE + IGGY_LEGACY_REQUEST_BYTES:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"a frame of {length} bytes")
    return int(length) + _LENGTH.size


def command(frame: Buffer) -> int:
    """Return the number of the command in a whole frame."""
    return int(_REQUEST.unpack_from(frame)[1])


def build_reply(status: ErrorCode) -> bytes:
    """Return a reply without a payload."""
    return _REPLY.pack(status, 0)
