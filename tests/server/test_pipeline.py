"""Goal: every outcome of a request is answered in its place, at once where it can be.

Method: requests whose course the test decides, without a socket and mostly without a turn of the
event loop in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from conversation import Conversation
from penstock.server.answers import Answers
from penstock.session import ONE_AFTER_ANOTHER, Answer, Buffers, Conflicts, Deferred, PeerError

FRAME = b"frame"


class RefusedError(Exception):
    """What a scripted request has an answer for."""


class Scripted:
    """A request that begins with a function; its reply is what is sent."""

    lane = 0

    def __init__(self, begin: Callable[[], Answer[bytes | None]]) -> None:
        self.begin = begin

    def encode(self, reply: bytes | None) -> Buffers | None:
        return None if reply is None else [memoryview(reply)]

    def refuse(self, error: Exception) -> Buffers | None:
        if isinstance(error, RefusedError):
            return [b"refused"]
        raise error


class ScriptedSession:
    """Every frame is the next request of a list."""

    def __init__(self, conflicts: Conflicts = ONE_AFTER_ANOTHER) -> None:
        self.conflicts = conflicts
        self.requests: list[Scripted] = []

    def frame_size(self, head: memoryview) -> int | None:
        return len(head)

    def receive(self, frame: memoryview) -> Scripted:
        return self.requests.pop(0)

    def close(self) -> None:
        """See Session."""


class Peer:
    """A conversation of scripted requests."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.failures: list[Exception] = []
        self.session = ScriptedSession()
        self._conversation = Conversation(
            self.session,
            lambda parts: self.written.extend(map(bytes, parts)),
            self.failures.append,
        )
        self.pipeline = self._conversation.pipeline

    @property
    def answers(self) -> Answers:
        return self._conversation.answers

    def ask(self, begin: Callable[[], Answer[bytes | None]]) -> None:
        self.session.requests.append(Scripted(begin))
        self._conversation.take(FRAME)

    def wait(self, reply: bytes | None = b"waited") -> asyncio.Future[None]:
        """Ask something that is answered when the returned future is done."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ask(lambda: _when(ready, reply))
        return ready


async def _when(ready: asyncio.Future[None], reply: bytes | None) -> bytes | None:
    await ready
    return reply


def deferred(ready: asyncio.Future[None]) -> Deferred[bytes]:
    def make(failure: BaseException | None) -> bytes:
        if failure is not None:
            raise failure
        return b"deferred"

    return Deferred(ready, make)


def done(failure: Exception | None = None) -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)
    return future


def fail(error: Exception) -> Callable[[], bytes]:
    def begin() -> bytes:
        raise error

    return begin


@pytest.fixture
async def peer() -> Peer:
    return Peer()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_ready_leaves_in_the_same_turn(peer: Peer) -> None:
    peer.ask(lambda: b"at once")
    peer.ask(lambda: deferred(done()))
    peer.ask(fail(RefusedError()))
    peer.ask(lambda: deferred(done(RefusedError())))
    peer.ask(lambda: None)
    assert peer.written == [b"at once", b"deferred", b"refused", b"refused"]
    assert len(peer.answers) == 0


async def test_what_is_parked_and_ready_leaves_in_one_turn_too(peer: Peer) -> None:
    waiting = done()
    first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    peer.ask(lambda: deferred(first))
    for begin in (lambda: b"a", lambda: deferred(waiting), lambda: None, fail(RefusedError())):
        peer.ask(begin)
    assert peer.written == []
    assert len(peer.answers) == 5
    first.set_result(None)
    await asyncio.sleep(0)
    assert peer.written == [b"deferred", b"a", b"deferred", b"refused"]
    assert len(peer.answers) == 0


@pytest.mark.parametrize("error", [PeerError("their fault"), ZeroDivisionError("a bug")])
async def test_what_has_no_answer_is_reported_and_holds_up_nobody(
    peer: Peer, error: Exception
) -> None:
    first = peer.wait()
    peer.ask(fail(error))
    failing = peer.wait()
    peer.ask(lambda: b"last")
    first.set_result(None)
    await turns()
    assert peer.failures == [error]
    failing.set_exception(error)
    await turns()
    assert peer.failures == [error, error]
    assert peer.written == [b"waited", b"last"]
    assert len(peer.answers) == 0


async def test_what_can_not_begin_is_raised_where_it_came(peer: Peer) -> None:
    with pytest.raises(PeerError):
        peer.ask(fail(PeerError("their fault")))
    peer.ask(lambda: b"next")
    assert (peer.written, peer.failures) == ([b"next"], [])


async def test_cancelling_drops_what_did_not_begin(peer: Peer) -> None:
    begun: list[str] = []
    peer.wait()
    peer.ask(lambda: begun.append("too late"))  # type: ignore[func-returns-value]
    await turns()
    assert peer.pipeline
    peer.pipeline.cancel()
    await asyncio.wait_for(peer.pipeline.ended(), 5)
    await turns()
    assert (begun, peer.written, bool(peer.pipeline)) == ([], [], False)


async def test_a_request_that_gives_up_lets_the_next_one_begin(peer: Peer) -> None:
    # A member that waits for its group is cancelled when its client goes.
    waiting = peer.wait()
    peer.ask(lambda: b"next")
    await turns()
    waiting.cancel()
    await turns()
    assert (peer.written, peer.failures) == ([b"next"], [])


async def test_a_reply_that_can_not_be_encoded_is_reported(peer: Peer) -> None:
    peer.ask(lambda: b"fine")
    with pytest.raises(TypeError):
        peer.ask(lambda: 7)  # type: ignore[arg-type, return-value]
    waiting = peer.wait(7)  # type: ignore[arg-type]
    waiting.set_result(None)
    await turns()
    assert isinstance(peer.failures[0], TypeError)
