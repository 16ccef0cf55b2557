"""The codec of dialect V, which apache-iggy 0.9 speaks: 256-byte headers, operations, evictions."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from penstock.iggy.wire import frame as framing
from penstock.iggy.wire.commands import COMMAND_OF, NON_REPLICATED, Command, Operation
from penstock.iggy.wire.errors import NOT_FOUND, UNREADABLE, ErrorCode, IggyError
from penstock.iggy.wire.frame import EvictedError, EvictionReason, RequestHeader
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.replies import PolledMessages
from penstock.iggy.wire.requests import ClientVersion, LoginRegister, LoginRegisterWithToken

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from types import CoroutineType

    from penstock.iggy.wire.message import MessageT
    from penstock.iggy.wire.replies import Reply
    from penstock.session import Buffers, Encoded, Part

PROTOCOL_VERSION: Final = 11 << 10
"""0.11.0: `major << 20 | minor << 10 | patch`."""

_NOT_NUMBERED: Final = frozenset(
    {Operation.REGISTER, Operation.NON_REPLICATED, Operation.LOGOUT_USER}
)
_TOLD_APART_BYTES: Final = 1024
_MINOR: Final = ~0x3FF
_COMMAND_OF_CODE: Final[Mapping[int, Command]] = {int(each): each for each in NON_REPLICATED}
_FAILED_LOGINS: Final[Mapping[ErrorCode, EvictionReason]] = {
    ErrorCode.INVALID_CREDENTIALS: EvictionReason.INVALID_CREDENTIALS,
    ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN: EvictionReason.INVALID_TOKEN,
}
_NOTHING_FOUND: Final[Mapping[int, tuple[frozenset[ErrorCode], bytes]]] = {
    Command.GET_CLIENT: (NOT_FOUND | UNREADABLE, b""),
    Command.GET_STREAM: (NOT_FOUND, b""),
    Command.GET_TOPIC: (NOT_FOUND, b""),
    Command.GET_TOPICS: (NOT_FOUND, bytes(4)),
    Command.GET_CONSUMER_GROUP: (frozenset({ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND}), b""),
    Command.GET_CONSUMER_OFFSET: (NOT_FOUND, b""),
    Command.SYNC_CONSUMER_GROUP: (NOT_FOUND, b""),
}
"""What a look-up may miss, and what the answer is then."""
_NOTHING_MISSED: Final[tuple[frozenset[ErrorCode], bytes]] = (frozenset(), b"")
_NUMBERS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.STREAM_NAME_NOT_FOUND: ErrorCode.STREAM_ID_NOT_FOUND,
    ErrorCode.TOPIC_NAME_NOT_FOUND: ErrorCode.TOPIC_ID_NOT_FOUND,
}
"""What went by a name is refused as what went by a number."""


class Asked(NamedTuple):
    """One request as it came."""

    header: RequestHeader
    body: memoryview


class CodecV:
    """A `penstock.iggy.wire.codec.Codec`."""

    version: Final = PROTOCOL_VERSION
    needs_login: Final = True
    has_heartbeat: Final = True

    frame_size = staticmethod(framing.frame_size)

    def parse(self, frame: memoryview) -> Asked:
        return Asked(framing.parse_request(frame), frame[framing.HEADER_SIZE :])

    def command(self, asked: Asked) -> Command:
        header = asked.header
        if header.operation == Operation.NON_REPLICATED:
            command = _COMMAND_OF_CODE.get(header.code)
        else:
            command = COMMAND_OF.get(header.operation)
        if command is not None:
            return command
        if header.operation == Operation.REGISTER:
            return _login(asked.body)
        if header.operation != Operation.NON_REPLICATED:
            raise EvictedError(EvictionReason.INVALID_REQUEST_OPERATION)
        if header.code in {Command.LOGIN_USER, Command.LOGIN_WITH_PERSONAL_ACCESS_TOKEN}:
            raise EvictedError(EvictionReason.MALFORMED_LOGIN)
        raise IggyError(ErrorCode.INVALID_COMMAND, f"code {header.code}")

    def is_send(self, asked: Asked) -> bool:
        return asked.header.operation == Operation.SEND_MESSAGES

    def decode(self, asked: Asked, kind: type[MessageT]) -> MessageT:
        return kind.decode(asked.body)

    def repetition(self, asked: Asked) -> Hashable | None:
        header, body = asked
        if header.operation in _NOT_NUMBERED or not header.request:
            return None
        # A client that gives its numbers to several requests means each of them. What begins a
        # batch has the batch's checksum.
        told_apart = body[:_TOLD_APART_BYTES]
        return header.request, header.operation, len(body), zlib.crc32(told_apart)

    def encode(self, asked: Asked, reply: Reply) -> Encoded:
        if isinstance(reply, PolledMessages):
            return framing.build_reply(asked.header, [reply.head.packed(), *reply.batches])
        if reply is not None and reply.is_long(reply):
            return cast("CoroutineType[Any, Any, Buffers]", self._encoded_in_steps(asked, reply))
        parts: list[Part] = []
        if framing.has_result_section(asked.header.operation):
            parts.append(framing.ACCEPTED)
        if reply is not None:
            parts.append(reply.encode())
        return framing.build_reply(asked.header, parts)

    async def _encoded_in_steps(self, asked: Asked, reply: Message) -> Buffers:
        parts: list[Part] = []
        if framing.has_result_section(asked.header.operation):
            parts.append(framing.ACCEPTED)
        parts.append(await reply.encode_in_steps(reply))
        return framing.build_reply(asked.header, parts)

    def encode_error(self, asked: Asked, error: IggyError) -> Buffers:
        header = asked.header
        if header.operation == Operation.NON_REPLICATED:
            missed, nothing = _NOTHING_FOUND.get(header.code, _NOTHING_MISSED)
            if error.code in missed:
                return framing.build_reply(header, [nothing])
            if error.code in UNREADABLE:
                return framing.build_reply(header, status=ErrorCode.INVALID_COMMAND)
        if header.operation == Operation.LOGOUT_USER and error.code is ErrorCode.UNAUTHENTICATED:
            return framing.build_reply(header)  # It is so already: clients say it to be sure.
        eviction = _eviction(header.operation, error)
        if eviction is not None:
            versions = {"version": eviction.version, "version_min": eviction.version_min}
            return [framing.build_eviction(header.client, eviction.reason, **versions)]
        code = _NUMBERS.get(error.code, error.code)
        if framing.has_result_section(header.operation):
            return framing.build_reply(header, [framing.rejected(code)])
        return framing.build_reply(header, status=code)

    def addressee(self, asked: Asked) -> bytes:
        return asked.header.client

    def encode_stale(self, addressee: bytes) -> Buffers:
        return [framing.build_eviction(addressee, EvictionReason.STALE_CLIENT)]


def _login(body: memoryview) -> Command:
    # A client of another version hears that, whatever it says behind the version.
    if _login_part(body, ClientVersion).protocol_version & _MINOR != PROTOCOL_VERSION & _MINOR:
        raise EvictedError(
            EvictionReason.INCOMPATIBLE_PROTOCOL,
            version=PROTOCOL_VERSION,
            version_min=PROTOCOL_VERSION & _MINOR,
        )
    # The forms share one operation. One with a token is too short for one with a password.
    try:
        LoginRegister.decode(body)
    except IggyError:
        _login_part(body, LoginRegisterWithToken)
        return Command.LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN
    return Command.LOGIN_REGISTER


def _login_part(body: memoryview, kind: type[MessageT]) -> MessageT:
    try:
        return kind.decode(body)
    except IggyError as error:
        raise EvictedError(EvictionReason.MALFORMED_LOGIN) from error


def _eviction(operation: int, error: IggyError) -> EvictedError | None:
    """Return what ends the session where that is how this dialect refuses."""
    if isinstance(error, EvictedError):
        return error
    if operation == Operation.REGISTER and error.code in _FAILED_LOGINS:
        return EvictedError(_FAILED_LOGINS[error.code])
    if operation != Operation.NON_REPLICATED and error.code is ErrorCode.UNAUTHENTICATED:
        return EvictedError(EvictionReason.NO_SESSION)
    return None
