"""Answers of bytes and file ranges: in order, at the client's pace, and never a wrong byte."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import random
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
import uvloop

from parts import content
from patience import PATIENCE_SECONDS, until
from penstock.limits import SENT_TOGETHER_BYTES
from penstock.server import sending
from penstock.server.page_cache import is_cached
from penstock.server.sending import Sender
from penstock.session import Buffers, FileRange, in_memory

SIZE = 6 << 20


class CountedFile:
    """A file that knows how many hold it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        self.holders = 0

    def hold(self) -> None:
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1


class End(asyncio.Protocol):
    """The server's end of a connection."""

    def __init__(self) -> None:
        self.moved_bytes = 0
        self.events: list[str] = []
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.sender = Sender(self.transport, self)

    def connection_lost(self, error: Exception | None) -> None:
        self.sender.drop()
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def abort(self, reason: str) -> None:
        self.events.append(reason)
        self.transport.abort()


Session = Callable[[End, socket.socket], Awaitable[None]]


def converse(session: Session) -> None:
    """Run one conversation on the loop that the broker has."""

    async def run() -> None:
        ends: list[End] = []

        def accept() -> End:
            ends.append(End())
            return ends[-1]

        loop = asyncio.get_running_loop()
        server = await loop.create_server(accept, "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname())
        client.setblocking(False)
        await until(lambda: ends)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await session(ends[0], client)
        client.close()
        await ends[0].lost
        server.close()

    # A loop that spins ends no timeout of its own.
    faulthandler.dump_traceback_later(2 * PATIENCE_SECONDS, exit=True)
    try:
        uvloop.run(run())
    finally:
        faulthandler.cancel_dump_traceback_later()


async def receive(client: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        piece = await loop.sock_recv(client, 1 << 18)
        if not piece:
            break
        data += piece
    return bytes(data)


@pytest.fixture
def file(tmp_path: Path) -> CountedFile:
    path = tmp_path / "segment"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return CountedFile(path)


def answers(file: CountedFile) -> list[Buffers]:
    """Return answers of all kinds, small and large."""
    chance = random.Random(2)
    made: list[Buffers] = []
    for _ in range(30):
        position = chance.randrange(SIZE)
        ranged = FileRange(file, position, min(chance.randrange(1, 3 << 20), SIZE - position))
        head = chance.randbytes(chance.randrange(1, 200_000))
        kinds: list[Buffers] = [[head], [head, ranged], [ranged], [head, ranged, head[:9]]]
        made.append(chance.choice(kinds))
    return made


def test_parts_arrive_in_order(file: CountedFile) -> None:
    async def session(end: End, client: socket.socket) -> None:
        sent = answers(file)
        expected = b"".join(map(content, sent))
        receiving = asyncio.create_task(receive(client, len(expected)))
        while sent:
            end.sender.send(sent.pop(0))
            if len(sent) % 3 == 0:
                await asyncio.sleep(0.01)
        assert await receiving == expected
        assert end.sender.queued_memory == 0
        assert end.moved_bytes > 0

    converse(session)
    assert file.holders == 0


def test_a_client_that_takes_nothing_is_waited_for(file: CountedFile) -> None:
    async def session(end: End, client: socket.socket) -> None:
        parts: Buffers = [b"head", *(FileRange(file, 0, SIZE) for _ in range(4))]
        assert in_memory(parts) == 4
        end.sender.send(parts)
        end.sender.send([b"tail"])
        await until(lambda: end.events == ["pause"])
        assert end.sender.queued_memory == 4
        end.sender.close()
        data = await receive(client, 8 + 4 * SIZE)
        assert len(data) == 8 + 4 * SIZE
        assert data.endswith(b"tail")
        assert end.events == ["pause", "resume"]
        assert await receive(client, 1) == b""

    converse(session)
    assert file.holders == 0


def test_one_turn_sends_a_bounded_amount(
    file: CountedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent_at_once: list[int] = []
    turns: list[int] = []

    def sendfile(out: int, in_: int, offset: int, count: int) -> int:
        sent_at_once.append(count)
        return count

    monkeypatch.setattr(sending.os, "sendfile", sendfile)

    async def session(end: End, client: socket.socket) -> None:
        end.sender.send([FileRange(file, 0, SIZE)])
        turns.append(sum(sent_at_once))
        await until(lambda: sum(sent_at_once) >= SIZE)

    converse(session)
    assert turns[0] <= SENT_TOGETHER_BYTES
    assert sum(sent_at_once) == SIZE


def test_the_loop_watches_only_a_socket_that_takes_no_more(
    file: CountedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[bool] = []
    tries: list[int] = []
    watch, send_some = Sender._watch, Sender._send_some

    def noted(sender: Sender, wanted: bool) -> None:
        watched.append(wanted)
        watch(sender, wanted)

    def counted(sender: Sender, most: int, read_bytes: int) -> bool:
        tries.append(most)
        return send_some(sender, most, read_bytes)

    monkeypatch.setattr(Sender, "_watch", noted)
    monkeypatch.setattr(Sender, "_send_some", counted)

    async def session(end: End, client: socket.socket) -> None:
        with monkeypatch.context() as accepting:
            accepting.setattr(sending.os, "sendfile", lambda _out, _in, _at, count: count)
            end.sender.send([FileRange(file, 0, SIZE)])
            await until(lambda: len(tries) >= SIZE // SENT_TOGETHER_BYTES)
            await asyncio.sleep(0.05)
        assert len(tries) == SIZE // SENT_TOGETHER_BYTES
        assert not any(watched)
        # Nobody takes any of this, and nothing goes past what the transport has.
        end.transport.write(bytes(32 << 20))
        tries.clear()
        end.sender.send([FileRange(file, 0, SIZE)])
        await until(lambda: watched and watched[-1])
        await asyncio.sleep(0.05)
        assert len(tries) < 10

    converse(session)
    assert file.holders == 0


@pytest.mark.parametrize("is_read_first", [False, True])
@pytest.mark.parametrize("missing", [100, 100_000, SIZE // 2, SIZE])
def test_a_file_that_was_cut_short_ends_the_connection(
    file: CountedFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: int,
    is_read_first: bool,
) -> None:
    asked: list[int] = []

    def cached(descriptor: int, position: int, size: int) -> bool:
        asked.append(position)
        return not is_read_first and is_cached(descriptor, position, size)

    monkeypatch.setattr(sending, "is_cached", cached)

    async def session(end: End, client: socket.socket) -> None:
        whole = (tmp_path / "segment").read_bytes()
        head: Buffers = [b"head"] if is_read_first else []
        end.sender.send([*head, FileRange(file, 0, SIZE)])
        os.truncate(tmp_path / "segment", SIZE - missing)
        end.sender.send([b"tail"])
        data = b""
        with contextlib.suppress(ConnectionResetError):
            data = (await receive(client, SIZE + 8)).removeprefix(content(head))
        # What was sent before the file was cut short may be more than is left of it.
        assert len(data) <= max(SIZE - missing, SENT_TOGETHER_BYTES)
        assert whole.startswith(data)
        assert any("could not be" in event for event in end.events)

    converse(session)
    assert len(asked) < 1000
    assert file.holders == 0


def test_pages_that_are_not_in_memory_are_read_by_a_thread(
    file: CountedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def never(descriptor: int, position: int, size: int) -> bool:
        asked.append(position)
        return False

    monkeypatch.setattr(sending, "is_cached", never)

    async def session(end: End, client: socket.socket) -> None:
        parts: Buffers = [b"head", FileRange(file, 0, SIZE), b"tail"]
        expected = content(parts)
        end.sender.send(parts)
        assert await receive(client, len(expected)) == expected

    converse(session)
    assert SIZE // SENT_TOGETHER_BYTES <= len(asked) < 1000
    assert file.holders == 0


def test_the_client_is_gone_in_the_middle(file: CountedFile) -> None:
    async def session(end: End, client: socket.socket) -> None:
        end.sender.send([b"head", FileRange(file, 0, SIZE), FileRange(file, 0, SIZE)])
        await receive(client, 10_000)

    converse(session)
    assert file.holders == 0


def test_the_page_cache_is_asked(file: CountedFile, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "segment", os.O_RDWR)
    os.fdatasync(descriptor)
    os.pread(descriptor, SIZE, 0)
    assert is_cached(descriptor, 5, SIZE - 5)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    cold = not is_cached(descriptor, 5, SIZE - 5)
    os.close(descriptor)
    if not cold:
        pytest.skip("this file system keeps all in memory")
