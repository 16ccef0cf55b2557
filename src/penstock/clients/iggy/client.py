"""A small blocking Iggy client, for pipelines: it speaks today's dialect over one connection.

    with IggyClient("127.0.0.1:8090", Access(login=Password("iggy", "iggy"))) as client:
        topic = client.topic("shop", "orders")
        batches = client.poll("shop", "orders", 0, offset=17, count=1000)

Every method raises IggyError for what the server refused, LoginError where it does not let us in,
and OSError for a connection that failed, after which the next call connects anew.
"""

from __future__ import annotations

import secrets
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.access import (
    OPEN,
    Access,
    LoginError,
    Token,
    connect,
    read_exactly,
    read_into,
)
from penstock.clients.closing import Closing
from penstock.iggy.wire import frame, replies, requests
from penstock.iggy.wire.batch import BATCH_HEADER_SIZE, BatchHeader, read_batch_header
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.dialect_v import PROTOCOL_VERSION
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.replies import Partition, TopicDetails

if TYPE_CHECKING:
    import socket

    from penstock.iggy.wire.message import Message
    from penstock.session import Buffer

__all__ = ["IggyClient", "IggyError", "Partition", "PolledBatch", "TopicDetails"]

DEFAULT_TIMEOUT_S: Final = 30.0
REPLY_BYTES: Final = 1 << 28
"""A reply of more is none of this protocol."""

_SDK: Final = ("penstock", "1")
_POLLED_SIZE: Final = 16
_METADATA_SIZE_SIZE: Final = 4
_KIND_AT: Final = 60
_EVICTION_REASON_AT: Final = 255
_LENGTH: Final = struct.Struct("<32xQ")
_DELTA: Final = struct.Struct("<24xI")
"""Where a batch says how long it is, and a message how far it is from the batch's first."""
_READER: Final = Consumer(ConsumerKind.CONSUMER, Identifier(0))


class PolledBatch(NamedTuple):
    """One batch as the server handed it out."""

    header: BatchHeader
    body: memoryview


class IggyClient(Closing):
    """`servers` is `host:port`, or several with commas, of which the first that answers is used."""

    def __init__(
        self, servers: str, access: Access = OPEN, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._servers = servers
        self._access = access
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._client = b""
        self._session = 0
        self._number = 0
        """Of the next request that the server is to do once; it counts these, and no others."""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def streams(self) -> list[replies.Stream]:
        return replies.Streams.decode(self._ask(Command.GET_STREAMS)).streams

    def topics(self, stream: str) -> list[replies.Topic]:
        """Return a stream's topics; none where there is no such stream."""
        asked = requests.StreamRequest(Identifier(stream))
        body = self._ask(Command.GET_TOPICS, asked)
        return replies.Topics.decode(body).topics if body else []

    def topic(self, stream: str, topic: str) -> TopicDetails | None:
        """Return a topic with its partitions, None where there is none."""
        asked = requests.TopicRequest(Identifier(stream), Identifier(topic))
        body = self._ask(Command.GET_TOPIC, asked)
        return TopicDetails.decode(body) if body else None

    def poll(
        self, stream: str, topic: str, partition: int, offset: int, count: int
    ) -> list[PolledBatch]:
        """Return the batches that hold up to `count` messages from an offset on."""
        strategy = PollingStrategy(PollingKind.OFFSET, offset)
        return self._poll(stream, topic, partition, strategy, count)

    def send(self, stream: str, topic: str, partition: int, count: int, batch: Buffer) -> None:
        """Append one batch of so many messages, and return when the server has it."""
        place = Identifier(stream), Identifier(topic)
        partitioning = Partitioning.partition(partition)
        named = requests.SendMessages(0, *place, partitioning, count, memoryview(b""))
        size = len(named.encode()) - _METADATA_SIZE_SIZE
        request = requests.SendMessages(size, *place, partitioning, count, memoryview(batch))
        self._connect()
        self._exchange(Command.SEND_MESSAGES, Operation.SEND_MESSAGES, request)

    def _poll(
        self, stream: str, topic: str, partition: int, strategy: PollingStrategy, count: int
    ) -> list[PolledBatch]:
        place = Identifier(stream), Identifier(topic), partition
        asked = requests.PollMessages(_READER, *place, strategy, count, auto_commit=False)
        body = self._ask(Command.POLL_MESSAGES, asked)
        return _batches(body[_POLLED_SIZE:])

    def first_offset(
        self, stream: str, topic: str, partition: int, since_us: int | None = None
    ) -> int | None:
        """Return the first offset there is, or that of the first message since a time; or None."""
        strategy = PollingStrategy(PollingKind.FIRST)
        if since_us is not None:
            strategy = PollingStrategy(PollingKind.TIMESTAMP, since_us)
        found = self._poll(stream, topic, partition, strategy, 1)
        return _first_offset(found[0]) if found else None

    def _ask(self, command: Command, request: Message | None = None) -> memoryview:
        """Return the body of the answer. Raises IggyError, LoginError and OSError."""
        self._connect()
        return self._exchange(command, Operation.NON_REPLICATED, request)

    def _connect(self) -> None:
        if self._socket is not None:
            return
        self._socket = connect(self._servers, self._timeout_s, self._access.tls)
        # A server leaves out what a client of this id has sent it under the same number before.
        self._client = secrets.token_bytes(16)
        self._session, self._number = 0, 1
        if self._access.login is None:
            return
        try:
            body = self._exchange(Command.PING, Operation.REGISTER, self._login())
            self._session = replies.LoggedIn.decode(body).session
        except IggyError as error:
            self.close()
            raise LoginError(f"{self._servers} does not let us in: {error}") from error

    def _login(self) -> Message:
        login = self._access.login
        assert login is not None
        if isinstance(login, Token):
            return requests.LoginRegisterWithToken(PROTOCOL_VERSION, *_SDK, login.token, "")
        return requests.LoginRegister(PROTOCOL_VERSION, *_SDK, login.user, login.password, "")

    def _exchange(
        self, command: Command, operation: Operation, request: Message | None
    ) -> memoryview:
        assert self._socket is not None
        body = b"" if request is None else request.encode()
        code = command if operation is Operation.NON_REPLICATED else 0
        number = 0 if operation is Operation.REGISTER else self._number
        if operation is Operation.SEND_MESSAGES:
            self._number += 1
        header = frame.RequestHeader(
            self._client, bytes(16), 0, number, operation, self._session, code
        )
        try:
            self._socket.sendall(b"".join(frame.build_request(header, body)))
            answer = _read_frame(self._socket)
        except OSError:
            self.close()
            raise
        if answer[_KIND_AT] == frame.FrameKind.EVICTION:
            self.close()
            raise _evicted(answer[_EVICTION_REASON_AT])
        reply = frame.parse_reply(answer)
        if reply.status:
            raise IggyError(_code(reply.status), command.name)
        rest = answer[frame.HEADER_SIZE :]
        return rest[len(frame.ACCEPTED) :] if frame.has_result_section(operation) else rest


def _read_frame(connection: socket.socket) -> memoryview:
    head = read_exactly(connection, frame.START_SIZE)
    size = int.from_bytes(head[-4:], "little")
    if not frame.HEADER_SIZE <= size <= REPLY_BYTES or any(head[:4]):
        raise ConnectionError("what answers does not speak today's protocol of Iggy")
    answer = memoryview(bytearray(size))
    answer[: len(head)] = head
    read_into(connection, answer[len(head) :])
    return answer


def _evicted(reason: int) -> IggyError:
    known = {int(each): each.name for each in frame.EvictionReason}
    return IggyError(ErrorCode.UNAUTHENTICATED, known.get(reason, f"reason {reason}"))


def _code(status: int) -> ErrorCode:
    return ErrorCode(status) if status in set(ErrorCode) else ErrorCode.ERROR


def _batches(body: memoryview) -> list[PolledBatch]:
    found = []
    while body:
        size = _LENGTH.unpack_from(body)[0] if len(body) >= BATCH_HEADER_SIZE else len(body)
        found.append(PolledBatch(read_batch_header(body[:size]), body[:size]))
        body = body[size:]
    return found


def _first_offset(batch: PolledBatch) -> int:
    delta: int = _DELTA.unpack_from(batch.body, BATCH_HEADER_SIZE)[0]
    return batch.header.base_offset + delta
