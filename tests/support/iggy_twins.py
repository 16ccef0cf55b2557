"""Two servers of Iggy's protocol that are asked the same, frame by frame, and what each answers."""

from __future__ import annotations

import itertools
import os
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iggy_dialog import OPERATION_OF, polled_batches, producer_batch
from penstock.iggy.wire import dialect_l, frame, replies, requests
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.identifiers import Identifier, Partitioning
from penstock.iggy.wire.message import Message
from side_by_side import Outcome, Step
from wire_clients import connect, receive_exactly

TIMEOUT_SECONDS = 20
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
    Command.GET_CLIENT: replies.ClientDetails,
    Command.GET_CLIENTS: replies.Clients,
    Command.GET_STREAMS: replies.Streams,
    Command.GET_STATS: replies.Stats,
    Command.GET_USER: replies.UserDetails,
    Command.GET_USERS: replies.Users,
}
OF_ALL = (replies.Stats, replies.Clients, replies.Streams, dialect_l.Streams)
"""Replies about what other runs have made and left, too."""
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


class Client(Protocol):
    """One connection to one of the two, in some dialect."""

    def ask(self, command: Command, request: Message | bytes = b"") -> Outcome:
        """Return what a request is answered with, or refused for."""

    def topic(self, stream: Identifier, name: str, partitions: int) -> Message:
        """Return what makes a topic that leaves all else to the server."""

    def batch(self, payloads: Sequence[bytes]) -> bytes:
        """Return messages as this dialect sends them, behind their place."""

    def close(self) -> None:
        """Hang up."""


class Twin:
    """One of the two and its clients; `run` keeps the streams of one run from those of others."""

    def __init__(self, connected: Callable[[], Client], run: str, clients: int = 1) -> None:
        self.stream = Identifier(run)
        self._connected = connected
        self._clients = [connected() for _ in range(clients)]

    def do(self, step: Step[Twin]) -> Outcome:
        return step(self)

    def ask(self, command: Command, request: Message | bytes = b"", client: int = 0) -> Outcome:
        """Return what a request of one of its clients is answered with, or refused for."""
        return self._clients[client].ask(command, request)

    def make_stream(self, stream: Identifier, topics: Mapping[str, int]) -> None:
        """Make a stream, and topics with so many partitions."""
        self.ask(Command.CREATE_STREAM, requests.CreateStream(str(stream.value), {}))
        for name, partitions in topics.items():
            topic = self._clients[0].topic(stream, name, partitions)
            self.ask(Command.CREATE_TOPIC, topic)

    def send(
        self, stream: Identifier, topic: Identifier, to: Partitioning, payloads: Sequence[bytes]
    ) -> Outcome:
        """Return what messages are answered with."""
        batch = memoryview(self._clients[0].batch(payloads))
        place = bytearray()
        for part in (stream, topic, to):
            part.write(place)
        request = requests.SendMessages(len(place) + 4, stream, topic, to, len(payloads), batch)
        return self.ask(Command.SEND_MESSAGES, request)

    def reconnect(self, client: int) -> None:
        """Have one of its clients hang up and come again."""
        self._clients[client].close()
        self._clients[client] = self._connected()

    def close(self) -> None:
        for client in self._clients:
            client.close()


class ClientOfToday:
    """Implements Client in today's dialect; over TLS where a file vouches for the server."""

    def __init__(self, address: str, authority: Path | None = None) -> None:
        self._socket = connect(address, TIMEOUT_SECONDS)
        if authority is not None:
            context = ssl.create_default_context(cafile=authority)
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._client = os.urandom(16)
        self._session = 0
        self._number = itertools.count(1)
        login = requests.LoginRegister(0x2C00, "rust-sdk", "0.11.0", "iggy", "iggy", "")
        body = self._exchange(Command.LOGIN_REGISTER, Operation.REGISTER, 0, login.encode())[1]
        self._session = replies.LoggedIn.decode(body[4:]).session

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

    def topic(self, stream: Identifier, name: str, partitions: int) -> Message:
        """Return what makes a topic that leaves all else to the server."""
        return requests.CreateTopic(stream, partitions, name, {})

    def batch(self, payloads: Sequence[bytes]) -> bytes:
        """Return messages as this dialect sends them, behind their place."""
        return producer_batch(*payloads)

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
    return plain(read)


def plain(value: Any) -> Any:
    """A reply without what a server chooses."""
    if isinstance(value, OF_ALL):
        return type(value).__name__
    if isinstance(value, replies.ConsumerGroups):
        value.groups.sort(key=lambda group: group.id)  # In any order there.
    if isinstance(value, Message):
        chosen = CHOSEN if isinstance(value, replies.Partition) else CHOSEN | SUMMED
        if isinstance(value, (replies.Stream, dialect_l.Stream)):
            chosen = chosen | {"id"}  # Other runs have made streams, too.
        names = [name for name in value.field_names if name not in chosen]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: value[key] for key in sorted(value) if key not in UNRELEASED}
    return [plain(each) for each in value] if isinstance(value, list) else value
