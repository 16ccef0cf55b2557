"""A client of apache-iggy 0.8 for twins, frame by frame: see iggy_twins."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from iggy_dialog import ORIGIN_US
from iggy_twins import REPLIES, TIMEOUT_SECONDS, plain
from older_iggy import request_frame
from older_iggy_words import Words, read
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.dialect_l import VERSION_0_7, CreateTopic, LoginUser, TopicSettings
from penstock.iggy.wire.identifiers import Identifier
from penstock.iggy.wire.message import Message
from side_by_side import Outcome
from wire_clients import connect, receive_exactly

WORDS = Words("0.8.0")


class ClientOf08:
    """Implements iggy_twins.Client in the dialect of 0.7 and 0.8."""

    def __init__(self, address: str) -> None:
        self._socket = connect(address, TIMEOUT_SECONDS)
        assert self.ask(Command.LOGIN_USER, LoginUser("iggy", "iggy", memoryview(bytes(8))))

    def ask(self, command: Command, request: Message | bytes = b"") -> Outcome:
        """Return what a request is answered with, or refused for."""
        body = request
        if isinstance(request, Message):
            written = bytearray()
            VERSION_0_7.layout(type(request)).write_from(request, written)
            body = bytes(written)
        self._socket.sendall(request_frame(command, body))
        status, size = struct.unpack("<II", receive_exactly(self._socket, 8))
        answer = bytes(receive_exactly(self._socket, size))
        return ("refused", status) if status else _read(command, answer)

    def topic(self, stream: Identifier, name: str, partitions: int) -> Message:
        """Return what makes a topic that leaves all else to the server."""
        return CreateTopic(stream, partitions, TopicSettings(1, 0, 0, 0), name)

    def batch(self, payloads: Sequence[bytes]) -> bytes:
        """Return messages as this dialect sends them, behind their place and number."""
        return WORDS.messages(*((payload, b"") for payload in payloads), origin=ORIGIN_US)

    def close(self) -> None:
        self._socket.close()


def _read(command: Command, body: bytes) -> Outcome:
    if command is Command.POLL_MESSAGES:
        partition, current, messages = read(body, WORDS)
        told = [(each.offset, any(each.id), each.origin, each.payload) for each in messages]
        return partition, current, len(told), told
    kind = REPLIES.get(command)
    if kind is None or not body:
        return body
    layout = VERSION_0_7.replies.get(kind, kind)
    return plain(layout.decode(body))
