"""Two servers of Iggy's protocol that are asked the same, frame by frame, and what each answers."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Mapping
from typing import Any

from iggy_dialog import OPERATION_OF, polled_batches
from penstock.iggy.wire import frame, replies, requests
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.identifiers import Identifier
from penstock.iggy.wire.message import Message
from side_by_side import Outcome, Step
from wire_clients import connect, receive_exactly

TIMEOUT_SECONDS = 20
TOPICS = {"one": 1, "many": 3}
INTERNAL = range(64, 128)
"""What the original turned an operation into, as its answer says, which has a result section."""
REPLIES: Mapping[Command, type[Message]] = {
    Command.GET_STREAM: replies.StreamDetails,
    Command.GET_TOPIC: replies.TopicDetails,
    Command.GET_TOPICS: replies.Topics,
    Command.CREATE_TOPIC: replies.TopicDetails,
    Command.CREATE_CONSUMER_GROUP: replies.ConsumerGroupDetails,
    Command.GET_CONSUMER_GROUP: replies.ConsumerGroupDetails,
    Command.GET_CONSUMER_GROUPS: replies.ConsumerGroups,
    Command.SYNC_CONSUMER_GROUP: replies.Assignment,
    Command.GET_CONSUMER_OFFSET: replies.ConsumerOffset,
    Command.SEND_MESSAGES: replies.Confirmations,
    Command.GET_ME: replies.ClientDetails,
}
CHOSEN = {"created_at", "stream_id", "client_id", "address", "generation", "segments_count", "size"}
"""Fields that each server fills as it likes: its numbers, times, and files."""
SUMMED = {"messages_count"}
"""What the original still counts of partitions and topics that are gone."""
UNRELEASED = {"enforce_fsync", "durability", "consumer_offset_durability"}
"""Options that came or went between the last server of the mirror and release 0.9.0."""
UNRESOLVED = {
    *(ErrorCode.STREAM_ID_NOT_FOUND, ErrorCode.TOPIC_ID_NOT_FOUND, ErrorCode.PARTITION_NOT_FOUND),
    *(ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND, ErrorCode.NO_PARTITIONS),
}
"""What the original calls RESOURCE_NOT_FOUND where a partition is written to."""


class Twin:
    """A session with one of the two; `run` keeps the streams of one run from those of others."""

    def __init__(self, address: str, run: str) -> None:
        self.stream = Identifier(run)
        self._socket = connect(address, TIMEOUT_SECONDS)
        self._client = os.urandom(16)
        self._session = 0
        self._number = itertools.count(1)
        login = requests.LoginRegister(0x2C00, "rust-sdk", "0.11.0", "iggy", "iggy", "")
        body = self._exchange(Command.LOGIN_REGISTER, Operation.REGISTER, 0, login.encode())[1]
        self._session = replies.LoggedIn.decode(body[4:]).session
        self.ask(Command.CREATE_STREAM, requests.CreateStream(run, {}))
        for name, partitions in TOPICS.items():
            topic = requests.CreateTopic(self.stream, partitions, name, {})
            self.ask(Command.CREATE_TOPIC, topic)

    def do(self, step: Step[Twin]) -> Outcome:
        return step(self)

    def ask(self, command: Command, request: Message | bytes = b"") -> Outcome:
        """Return what a request is answered with, or refused for."""
        body = request if isinstance(request, bytes) else request.encode()
        operation = OPERATION_OF.get(command, Operation.NON_REPLICATED)
        number = 0 if operation == Operation.NON_REPLICATED else next(self._number)
        head, answer = self._exchange(command, operation, number, body)
        if head[60] == frame.FrameKind.EVICTION:
            return "evicted", head[-1]
        reply = frame.parse_reply(head)
        code, answer = _judged(reply, answer)
        if code in UNRESOLVED and operation >= Operation.SEND_MESSAGES:
            code = ErrorCode.RESOURCE_NOT_FOUND
        return ("refused", code) if code else _read(command, answer)

    def close(self) -> None:
        self._socket.close()

    def _exchange(
        self, command: Command, operation: Operation, number: int, body: bytes | bytearray
    ) -> tuple[bytes, bytes]:
        code = command if operation == Operation.NON_REPLICATED else 0
        who = (self._client, bytes(16), 0, number, operation, self._session, code)
        self._socket.sendall(b"".join(frame.build_request(frame.RequestHeader(*who), body)))
        head = bytes(receive_exactly(self._socket, frame.HEADER_SIZE))
        (size,) = struct.unpack_from("<I", head, 48)
        return head, bytes(receive_exactly(self._socket, size - frame.HEADER_SIZE))


def _judged(reply: frame.ReplyHeader, body: bytes) -> tuple[int, bytes]:
    """Return the number of the error, wherever it stands, and the payload."""
    framed = frame.has_result_section(reply.operation) or reply.operation in INTERNAL
    if reply.status or not framed:
        return reply.status, body
    count, _, code = struct.unpack_from("<III", body + bytes(8))
    return (code, b"") if count else (0, body[4:])


def _read(command: Command, body: bytes) -> Outcome:
    if command is Command.POLL_MESSAGES:
        head, batches = polled_batches(body)
        told = [(each.base_offset, each.origin_timestamp, *frames) for each, frames in batches]
        return head.partition_id, head.current_offset, head.messages_count, told
    kind = REPLIES.get(command)
    if kind is None or not body:
        return body if command is not Command.CREATE_STREAM else "created"
    read = kind.decode(body)
    assert read.encode() == body, "every byte of it has a meaning"
    if isinstance(read, replies.ConsumerGroups):
        read.groups.sort(key=lambda group: group.id)  # In any order there.
    return _plain(read)


def _plain(value: Any) -> Any:
    """A reply without what a server chooses."""
    if isinstance(value, Message):
        chosen = CHOSEN if isinstance(value, replies.Partition) else CHOSEN | SUMMED
        names = [name for name in value.field_names if name not in chosen]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: value[key] for key in sorted(value) if key not in UNRELEASED}
    return [_plain(each) for each in value] if isinstance(value, list) else value
