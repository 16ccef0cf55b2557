"""A session without a socket: requests in, answers out, over a broker in a folder."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from conversation import Conversation, SessionsOfBrokers
from penstock.iggy.session import sessions
from penstock.iggy.wire import frame, replies, requests
from penstock.iggy.wire.batch import BatchHeader
from penstock.iggy.wire.commands import COMMAND_OF, Command, Operation
from penstock.iggy.wire.identifiers import Identifier, Partitioning
from penstock.session import PeerError

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.iggy.wire.message import Message
    from penstock.session import Buffers

CLIENT = b"client-of-a-test"
OPERATION_OF = {command: operation for operation, command in COMMAND_OF.items()}
ORIGIN_US = 1_700_000_000_000_000


class Transport:
    """What a session writes to; nothing is written outside of answers."""

    peer = "127.0.0.1:50000"
    address = "127.0.0.1"
    local_address = ("127.0.0.1", 8090)

    def write(self, parts: Buffers) -> None:
        raise AssertionError("a session of Iggy pushes nothing")

    @property
    def sends_files(self) -> bool:
        return False

    async def writable(self) -> None:
        """Take everything at once."""

    def close(self, reason: str) -> None:
        raise AssertionError(reason)


class Answer(NamedTuple):
    """A reply, or an eviction: then `evicted` is its reason."""

    status: int
    body: bytes
    evicted: int = 0

    @property
    def rejected(self) -> int:
        """The number in a result section, 0 for a success."""
        count, *result = struct.unpack_from("<III", self.body + bytes(8))
        return result[1] if count else 0


class Dialog:
    """One client; requests are numbered as the real one does."""

    def __init__(self, broker: Broker) -> None:
        self.session = SESSIONS.make(broker, Transport())
        self.number = 0
        self._conversation = Conversation(self.session, self._written, self._failed)
        self._awaited: deque[asyncio.Future[bytes]] = deque()
        self._is_legacy = False

    async def send(self, built: bytes) -> bytes:
        """Have one frame answered, after its end was found."""
        self._is_legacy = any(built[:4])
        return await self.send_as_before(built)

    async def send_as_before(self, built: bytes) -> bytes:
        """Have a frame answered in the dialect of the last one."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited.append(answer)
        try:
            self._conversation.take(built)
        except PeerError:
            self._awaited.remove(answer)
            raise
        return await answer

    @property
    def owed(self) -> int:
        """How many answers did not come yet."""
        return len(self._awaited)

    async def ask(
        self, command: Command, request: Message | bytes = b"", operation: int | None = None
    ) -> Answer:
        """Send a request and read the answer."""
        body = request if isinstance(request, bytes) else bytes(request.encode())
        if operation is None:
            operation = OPERATION_OF.get(command, Operation.NON_REPLICATED)
        self.number += 1
        header = frame.RequestHeader(CLIENT, bytes(16), 0, self.number, operation, 1, command)
        answer = await self.send(b"".join(frame.build_request(header, body)))
        if answer[60] == frame.FrameKind.EVICTION:
            assert answer[128:144] == CLIENT
            return Answer(0, b"", answer[-1])
        reply = frame.parse_reply(answer)
        assert (reply.client, reply.request) == (CLIENT, header.request)
        return Answer(reply.status, answer[frame.HEADER_SIZE :])

    async def log_in(self, password: str = "iggy", version: int = 0x2C00) -> Answer:
        """Log in as the real client does."""
        login = requests.LoginRegister(version, "rust-sdk", "0.11.0", "iggy", password, "")
        return await self.ask(Command.LOGIN_REGISTER, login, Operation.REGISTER)

    async def set_up(self, partitions: int = 1) -> None:
        """Log in and make topic `t` of stream `s`."""
        await self.log_in()
        await self.ask(Command.CREATE_STREAM, requests.CreateStream("s", {}))
        topic = requests.CreateTopic(STREAM, partitions, "t", {})
        assert not (await self.ask(Command.CREATE_TOPIC, topic)).rejected

    async def produce(self, batch: bytes, count: int) -> Answer:
        """Send a batch to partition 0."""
        to = (STREAM, TOPIC, Partitioning.partition(0))
        return await self.ask(
            Command.SEND_MESSAGES, requests.SendMessages(22, *to, count, memoryview(batch))
        )

    def _written(self, parts: Buffers) -> None:
        data = b"".join(parts)
        while data:
            size_at, rest = (4, 8) if self._is_legacy else (48, 0)
            size = rest + int.from_bytes(data[size_at : size_at + 4], "little")
            self._awaited.popleft().set_result(data[:size])
            data = data[size:]

    def _failed(self, error: Exception) -> None:
        self._awaited.popleft().set_exception(error)


SESSIONS = SessionsOfBrokers(sessions)
STREAM, TOPIC = Identifier("s"), Identifier("t")


def message_frame(index: int, payload: bytes, headers: bytes = b"", delta_us: int = 0) -> bytes:
    """One message as a producer sends it."""
    rest = struct.pack(
        "<16sIIIIQ", bytes(15) + b"\7", index, delta_us, len(headers), len(payload), 0
    )
    rest += payload + headers
    return struct.pack("<Q", xxhash.xxh3_64_intdigest(rest)) + rest


def batch_checksum(header: BatchHeader, frames: Sequence[bytes]) -> int:
    """What a batch's header must say about itself and its frames."""
    summed = struct.pack("<QQQQQI", *header[:5], header.message_count)
    return xxhash.xxh3_64_intdigest(summed + b"".join(frame[:8] for frame in frames))


def header_bytes(header: BatchHeader) -> bytes:
    """The 256 bytes of a batch's header."""
    return struct.pack("<QQQQQQI204x", *header)


def producer_batch(*payloads: bytes, origin_us: int = ORIGIN_US) -> bytes:
    """A batch as a producer sends it; a message a microsecond."""
    frames = [message_frame(i, payload, delta_us=i) for i, payload in enumerate(payloads)]
    size = 256 + sum(map(len, frames))
    header = BatchHeader(0, 0, 0, origin_us, size, 0, len(frames))
    header = header._replace(batch_checksum=batch_checksum(header, frames))
    return header_bytes(header) + b"".join(frames)


def polled_batches(body: bytes) -> tuple[replies.Polled, list[tuple[BatchHeader, list[bytes]]]]:
    """Read a poll's reply: its head, and each batch's header and frames."""
    head = replies.Polled.decode(body[:16])
    batches, position = [], 16
    while position < len(body):
        header = BatchHeader._make(struct.unpack_from("<QQQQQQI", body, position))
        end, at, frames = position + header.batch_length, position + 256, []
        while at < end:
            headers_size, payload_size = struct.unpack_from("<II", body, at + 32)
            frames.append(body[at : at + 48 + payload_size + headers_size])
            at += len(frames[-1])
        assert at == end
        batches.append((header, frames))
        position = end
    return head, batches
