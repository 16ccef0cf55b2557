"""A Pulsar client without a socket: commands in, frames out, on a real broker."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from fastcrc.crc32 import iscsi as crc32c

from conversation import Conversation, SessionsOfBrokers
from parts import content, count_of_ranges
from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.pulsar.session import PulsarSession, sessions
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.pulsar.wire.frames import Frame, encode_payload_command, parse_frame
from penstock.records.pulsar.metadata_pb2 import MessageMetadata
from penstock.session import Buffers, PeerError
from penstock.tasks import Tasks

Command = api.BaseCommand


def entry(payload: bytes = b"payload", *, checksum: bool = True, **metadata: Any) -> bytes:
    """What stands behind SEND."""
    fields = {"producer_name": "test", "sequence_id": 0, "publish_time": 1_700_000_000_000}
    encoded = MessageMetadata(**{**fields, **metadata}).SerializeToString()
    unsummed = len(encoded).to_bytes(4) + encoded + payload
    return b"\x0e\x01" + crc32c(unsummed).to_bytes(4) + unsummed if checksum else unsummed


def batch(*payloads: bytes) -> tuple[bytes, int]:
    """A batch's payload, and how many messages it has."""
    from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata

    parts = []
    for payload in payloads:
        single = SingleMessageMetadata(payload_size=len(payload)).SerializeToString()
        parts += [len(single).to_bytes(4), single, payload]
    return b"".join(parts), len(payloads)


def frame_of(command: Command, body: bytes = b"") -> bytes:
    return encode_payload_command(command, len(body)) + body


class Peer:
    """One connection. It is its session's transport too."""

    peer = "test:1"
    address = "127.0.0.1"
    local_address = ("127.0.0.1", 6650)

    def __init__(self, broker: Broker, *, sends_files: bool = False) -> None:
        self.sends_files = sends_files
        self.ranges = 0
        """Parts that came from a file."""
        self.heard: list[Frame] = []
        self.close_reason = ""
        self.failures: list[Exception] = []
        self.lost = False
        self.congested = False
        self._arrived = asyncio.Condition()
        self._numbers = itertools.count(1_000_000)
        self._tasks = Tasks()
        session = SESSIONS.make(broker, self)
        assert isinstance(session, PulsarSession)
        self.session = session
        self.client = session.client
        self._conversation = Conversation(session, self.write, self._failed)

    # The session's transport.

    def write(self, parts: Buffers) -> None:
        self.ranges += count_of_ranges(parts)
        data = memoryview(content(parts))
        while data:
            size = 4 + int.from_bytes(data[:4])
            self.heard.append(parse_frame(data[:size]))
            data = data[size:]
        self._tasks.start(self._wake(), "wake")

    async def writable(self) -> None:
        if self.lost:
            raise ConnectionResetError
        async with self._arrived:
            await self._arrived.wait_for(lambda: not self.congested)

    def close(self, reason: str) -> None:
        self.close_reason = reason

    # The client.

    def say(self, command: Command, body: bytes = b"") -> None:
        self.say_bytes(frame_of(command, body))

    def say_bytes(self, frame: bytes) -> None:
        self._conversation.take(frame)

    async def ask(self, command: Command, kind: int, body: bytes = b"") -> Any:
        """Say something and return the first answer of a kind that comes after it."""
        self.say(command, body)
        return await self.hear(kind)

    async def hear(self, kind: int) -> Any:
        """Return, and forget, the first frame of a kind: its command's own message."""
        return getattr((await self.hear_frame(kind)).command, _field(kind))

    async def hear_frame(self, kind: int) -> Frame:
        def find() -> Frame | None:
            return next((f for f in self.heard if f.command.type == kind), None)

        async with asyncio.timeout(PATIENCE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: find() is not None)
        found = find()
        assert found is not None
        self.heard.remove(found)
        return found

    async def closed(self) -> str:
        """Return why the broker closed the connection, once it did for a request."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: bool(self.close_reason))
        return self.close_reason

    async def ended(self) -> None:
        """Return when no request waits for anything."""
        await self._conversation.pipeline.ended()

    def silent(self, kind: int) -> bool:
        return all(frame.command.type != kind for frame in self.heard)

    async def wake(self) -> None:
        await self._wake()

    def lose(self) -> None:
        self.lost = True
        self.session.close()

    async def connect(self, version: int = 20, client: str = "test") -> Any:
        connect = api.CommandConnect(client_version=client, protocol_version=version)
        return await self.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)

    async def producer(self, topic: str, producer_id: int = 1, **options: Any) -> Any:
        made = api.CommandProducer(topic=topic, producer_id=producer_id, request_id=1, **options)
        return await self.ask(
            Command(type=Command.PRODUCER, producer=made), Command.PRODUCER_SUCCESS
        )

    async def publish(
        self, body: bytes, producer_id: int = 1, sequence_id: int | None = None
    ) -> Any:
        """Send an entry, with a number above all others where none is given."""
        if sequence_id is None:
            sequence_id = next(self._numbers)
        sent = api.CommandSend(producer_id=producer_id, sequence_id=sequence_id)
        return await self.ask(Command(type=Command.SEND, send=sent), Command.SEND_RECEIPT, body)

    async def subscribe(self, topic: str, consumer_id: int = 1, **options: Any) -> Any:
        made = api.CommandSubscribe(
            topic=topic,
            consumer_id=consumer_id,
            request_id=2,
            **{"subscription": "sub", "subType": api.CommandSubscribe.Exclusive, **options},
        )
        return await self.ask(Command(type=Command.SUBSCRIBE, subscribe=made), Command.SUCCESS)

    def flow(self, permits: int, consumer_id: int = 1) -> None:
        flow = api.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
        self.say(Command(type=Command.FLOW, flow=flow))

    def acknowledge(self, *ids: api.MessageIdData, consumer_id: int = 1, **options: Any) -> None:
        ack = api.CommandAck(
            consumer_id=consumer_id,
            message_id=ids,
            **{"ack_type": api.CommandAck.Individual, **options},
        )
        self.say(Command(type=Command.ACK, ack=ack))

    def _failed(self, error: Exception) -> None:
        if isinstance(error, PeerError):
            self.close_reason = str(error)
            self._tasks.start(self._wake(), "wake")
        else:  # What the server would call a bug.
            self.failures.append(error)

    async def _wake(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()


SESSIONS = SessionsOfBrokers(sessions)

_FIELDS = {
    number: field.name
    for field in Command.DESCRIPTOR.fields
    for number in [field.number]
    if field.number > 1
}


def _field(kind: int) -> str:
    return _FIELDS[kind]
