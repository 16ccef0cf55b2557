"""A listening server whose sessions are scripted: a text says what a request does."""

from __future__ import annotations

import asyncio

from patience import until
from penstock.memory import Memory
from penstock.server.connection import Connection
from penstock.server.connections import Connections
from penstock.session import NO_LANES, Answer, Buffers, Deferred, PeerError, Transport

FRAME_MAX = 64 << 20


class ScriptedRequest:
    """Its reply is what is sent."""

    lane = None
    held_bytes = 0

    def __init__(self, answer: Answer[Buffers | None]) -> None:
        self.answer = answer

    def begin(self) -> Answer[Buffers | None]:
        return self.answer

    def encode(self, reply: Buffers | None) -> Buffers | None:
        return reply

    def refuse(self, error: Exception) -> Buffers | None:
        raise error


class ScriptedSession:
    """Frames are 4 bytes of size and a text; the text says what to do."""

    conflicts = NO_LANES

    def __init__(self, transport: Transport, defers: bool) -> None:
        self.transport = transport
        self.defers = defers
        self.received: list[bytes] = []
        self.waits: dict[bytes, asyncio.Future[Buffers | None]] = {}
        self.closed = 0

    def frame_size(self, head: memoryview) -> int | None:
        if len(head) < 4:
            return None
        size = int.from_bytes(head[:4])
        if size > FRAME_MAX:
            raise PeerError(f"a frame of {size} bytes is over the limit")
        return 4 + size

    def receive(self, frame: memoryview) -> ScriptedRequest:
        return ScriptedRequest(self._answer(frame))

    def _answer(self, frame: memoryview) -> Answer[Buffers | None]:
        text = bytes(frame[4:])
        self.received.append(text)
        if text.startswith(b"wait"):
            self.waits[text] = asyncio.get_running_loop().create_future()
            return self._deferred(self.waits[text]) if self.defers else _wait(self.waits[text])
        if text == b"silent":
            return None
        if text == b"bug":
            raise ZeroDivisionError("scripted")
        if text == b"refuse":
            raise PeerError("scripted refusal")
        if text == b"quit":
            self.transport.close("scripted end")
        return [frame[:4], frame[4:]]

    def close(self) -> None:
        self.closed += 1

    def _deferred(self, answer: asyncio.Future[Buffers | None]) -> Deferred[Buffers | None]:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def pass_on(_: object) -> None:
            if answer.exception() is None:
                ready.set_result(None)
            else:
                ready.set_exception(answer.exception())

        def make(failure: BaseException | None) -> Buffers | None:
            if failure is not None:
                raise failure
            return answer.result()

        answer.add_done_callback(pass_on)
        return Deferred(ready, make)


async def _wait(answer: asyncio.Future[Buffers | None]) -> Buffers | None:
    return await answer


class Peer:
    """The client's end, and the session at the other end."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        session: ScriptedSession,
    ) -> None:
        self.reader, self.writer, self.session = reader, writer, session

    def send(self, *texts: bytes) -> None:
        self.writer.write(b"".join(frame(text) for text in texts))

    async def answer(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)


class Host:
    """A listening server whose sessions are scripted."""

    def __init__(self, defers: bool = False) -> None:
        self.connections = Connections("", Memory())
        self.defers = defers
        self.sessions: list[ScriptedSession] = []

    async def start(self) -> None:
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection("kafka", self._session, self.connections), "127.0.0.1", 0
        )
        self.port = self.server.sockets[0].getsockname()[1]

    def _session(self, transport: Transport) -> ScriptedSession:
        self.sessions.append(ScriptedSession(transport, self.defers))
        return self.sessions[-1]

    async def connect(self) -> Peer:
        count = len(self.sessions)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await until(lambda: len(self.sessions) > count)
        return Peer(reader, writer, self.sessions[-1])


def frame(text: bytes) -> bytes:
    return len(text).to_bytes(4) + text
