"""The codec of the two older dialects' framing: a length and a code, a status and a length.

A client of apache-iggy 0.5 to 0.8 logs in before it asks
for anything, and one of 2023 knows no login: the first request but a ping tells these two apart.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from penstock.iggy.wire import requests, versions_l
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.dialect_e import EARLY
from penstock.iggy.wire.dialect_l import VERSION_0_7
from penstock.iggy.wire.errors import NOT_FOUND, UNREADABLE, ErrorCode, IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.older import read_request
from penstock.iggy.wire.replies import PolledMessages
from penstock.limits import IGGY_LEGACY_REQUEST_BYTES

if TYPE_CHECKING:
    from types import CoroutineType

    from penstock.iggy.wire.message import Message, MessageT
    from penstock.iggy.wire.older import OlderDialect
    from penstock.iggy.wire.replies import Reply
    from penstock.session import Buffer, Buffers, Encoded

_LENGTH: Final = struct.Struct("<I")
_REQUEST: Final = struct.Struct("<II")
_REPLY: Final = struct.Struct("<II")
_CODE_SIZE: Final = 4
_MISSED: Final = NOT_FOUND | {
    ErrorCode.PARTITION_NOT_FOUND,
    ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND,
}
"""What a look-up may miss."""
_LOGINS: Final = frozenset({Command.LOGIN_USER, Command.LOGIN_WITH_PERSONAL_ACCESS_TOKEN})


class Asked(NamedTuple):
    """One request as it came."""

    code: int
    body: memoryview


class LegacyCodec:
    """A `penstock.iggy.wire.codec.Codec`, of one connection: what it heard tells how it speaks."""

    version: Final = 0
    """What clients of that time speak has no number of its own."""
    has_heartbeat: Final = False

    def __init__(self) -> None:
        self._dialect: OlderDialect = EARLY

    @property
    def needs_login(self) -> bool:
        return self._dialect.needs_login

    def frame_size(self, head: Buffer) -> int | None:
        if len(head) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(head)
        if not _CODE_SIZE <= length <= _CODE_SIZE + IGGY_LEGACY_REQUEST_BYTES:
            raise IggyError(ErrorCode.INVALID_COMMAND, f"a frame of {length} bytes")
        return int(length) + _LENGTH.size

    def parse(self, frame: memoryview) -> Asked:
        _, code = _REQUEST.unpack_from(frame)
        if code in _LOGINS and not self._dialect.needs_login:
            self._dialect = VERSION_0_7
        return Asked(code, frame[_REQUEST.size :])

    def command(self, asked: Asked) -> Command:
        command = self._dialect.commands.get(asked.code)
        if command is None:
            raise IggyError(ErrorCode.INVALID_COMMAND, f"code {asked.code}")
        return command

    def is_send(self, asked: Asked) -> bool:
        return asked.code == Command.SEND_MESSAGES

    def decode(self, asked: Asked, kind: type[MessageT]) -> MessageT:
        if not self._dialect.needs_login:
            return read_request(kind, self._dialect.layout(kind), Reader(asked.body))
        self._dialect, request = versions_l.read(self._dialect, kind, asked.body)
        if isinstance(request, requests.LoginRegister):
            self._dialect = versions_l.of_library(request.sdk_version)
        return request

    def repetition(self, asked: Asked) -> None:
        del asked  # No request has a number.

    def encode(self, asked: Asked, reply: Reply) -> Encoded:
        if reply is None or asked.code in self._dialect.answered_with_nothing:
            return _reply()
        if isinstance(reply, PolledMessages):
            return _reply([_bytes(self._layout(reply.head), reply.head), *reply.batches])
        layout = self._layout(reply)
        if layout.is_long(reply):
            return cast("CoroutineType[Any, Any, Buffers]", _encoded_in_steps(layout, reply))
        return _reply([_bytes(layout, reply)])

    def encode_error(self, asked: Asked, error: IggyError) -> Buffers | None:
        dialect = self._dialect
        if asked.code in dialect.looked_up and error.code in _MISSED:
            return _reply()
        if dialect.hangs_up and error.code in UNREADABLE:
            return None
        return [_REPLY.pack(dialect.number(error.code), 0)]

    def addressee(self, asked: Asked) -> bytes:
        del asked  # An answer names nobody: they come in order.
        return b""

    def encode_stale(self, addressee: bytes) -> Buffers:
        del addressee
        return [_REPLY.pack(ErrorCode.STALE_CLIENT, 0)]

    def _layout(self, reply: Message) -> type[Message]:
        return self._dialect.replies.get(type(reply), type(reply))


def _bytes(layout: type[Message], reply: Message) -> bytearray:
    out = bytearray()
    layout.write_from(reply, out)
    return out


def _reply(body: Buffers = ()) -> Buffers:
    return [_REPLY.pack(ErrorCode.OK, sum(map(len, body))), *body]


async def _encoded_in_steps(layout: type[Message], reply: Message) -> Buffers:
    return _reply([await layout.encode_in_steps(reply)])
