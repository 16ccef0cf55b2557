"""Goal: every outcome of a request is answered in its place, at once where it can be.

Method: requests whose course the test decides, without a socket and mostly without a turn of the
event loop in between.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

from conversation import Conversation
from patience import PATIENCE_SECONDS
from penstock.server.answers import Answers
from penstock.server.turns import Turn
from penstock.session import (
    Answer,
    Buffers,
    Conflicts,
    Deferred,
    PeerError,
    Signal,
    ended,
)

FRAME = b"frame"
ONE_LANE: Conflicts = ((0,),)


class RefusedError(Exception):
    """What a scripted request has an answer for."""


class Scripted:
    """A request that begins with a function; its reply is what is sent."""

    def __init__(self, begin: Callable[[], Answer[bytes | None]], lane: int | None) -> None:
        self.begin = begin
        self.lane = lane
        self.held_bytes = 0

    def encode(self, reply: bytes | None) -> Buffers | None:
        return None if reply is None else [memoryview(reply)]

    def refuse(self, error: Exception) -> Buffers | None:
        if isinstance(error, RefusedError):
            return [b"refused"]
        raise error


class ScriptedSession:
    """Every frame is the next request of a list."""

    def __init__(self, conflicts: Conflicts = ONE_LANE) -> None:
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
        self.conversation = Conversation(
            self.session,
            lambda parts: self.written.extend(map(bytes, parts)),
            self.failures.append,
        )
        self.pipeline = self.conversation.pipeline

    def take_turn(self, steps: int) -> bool:
        """Have a turn of so many steps; return whether there is work for another one."""
        self.pipeline.go_on(Turn(steps, math.inf))
        return self.pipeline.has_work

    @property
    def answers(self) -> Answers:
        return self.conversation.answers

    def ask(self, begin: Callable[[], Answer[bytes | None]], lane: int | None = 0) -> None:
        self.session.requests.append(Scripted(begin, lane))
        self.conversation.take(FRAME)

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


async def test_what_is_in_no_lane_waits_for_nothing_but_its_place(peer: Peer) -> None:
    begun: list[bytes] = []
    first = peer.wait()
    peer.ask(lambda: begun.append(b"parked") or b"parked")  # type: ignore[func-returns-value]
    peer.ask(lambda: begun.append(b"beside") or b"beside", lane=None)  # type: ignore[func-returns-value]
    assert (begun, peer.written) == ([b"beside"], [])
    first.set_result(None)
    await turns()
    assert peer.written == [b"waited", b"parked", b"beside"]


async def test_cancelling_drops_what_did_not_begin(peer: Peer) -> None:
    begun: list[str] = []
    peer.wait()
    peer.ask(lambda: begun.append("too late"))  # type: ignore[func-returns-value]
    await turns()
    assert peer.pipeline
    peer.pipeline.cancel()
    await asyncio.wait_for(peer.pipeline.ended(), PATIENCE_SECONDS)
    await turns()
    assert (begun, peer.written, bool(peer.pipeline)) == ([], [], False)


@pytest.mark.filterwarnings("error")
async def test_what_is_cancelled_before_its_first_step_is_closed(peer: Peer) -> None:
    answers = [_when(done(), b"too late") for _ in range(2)]
    for answer in answers:
        peer.ask(lambda answer=answer: answer, lane=None)
    peer.pipeline.cancel()
    await asyncio.wait_for(peer.pipeline.ended(), PATIENCE_SECONDS)
    await turns()
    assert [inspect.getcoroutinestate(answer) for answer in answers] == ["CORO_CLOSED"] * 2


async def _twice(signal: Signal, ended_with: list[str]) -> bytes:
    try:
        await ended(signal)
        signal.clear()
        await ended(signal)
    finally:
        ended_with.append("its end")
    return b"twice"


async def test_what_waits_for_a_signal_goes_on_in_turns_and_in_no_task(peer: Peer) -> None:
    signals = [Signal() for _ in range(10)]
    tasks = len(asyncio.all_tasks())
    for signal in signals:
        peer.ask(lambda signal=signal: _twice(signal, []), lane=None)
    peer.conversation.has_turns = False
    for number in range(2):
        for signal in signals:
            signal.set()
        await turns()
        assert peer.written == []
        assert peer.take_turn(steps=5), "half of them went on"
        assert not peer.take_turn(steps=5)
        assert len(asyncio.all_tasks()) == tasks
        assert b"".join(peer.written) == b"twice" * 10 * number
    assert not peer.pipeline


@pytest.mark.filterwarnings("error")
async def test_cancelling_ends_what_waits_for_a_signal(peer: Peer) -> None:
    signal, ended_with = Signal(), list[str]()
    peer.ask(lambda: _twice(signal, ended_with))
    assert peer.pipeline
    peer.pipeline.cancel()
    assert (ended_with, bool(peer.pipeline)) == (["its end"], False)
    signal.set()
    await turns()
    assert (peer.written, peer.failures) == ([], [])


async def test_what_waits_for_a_signal_first_may_need_a_task_then(peer: Peer) -> None:
    signal = Signal()

    async def work() -> bytes:
        await ended(signal)
        await asyncio.sleep(0)
        await ended(signal)
        return b"done"

    peer.ask(work)
    signal.set()
    await turns()
    assert peer.written == [b"done"]


async def test_what_was_parked_begins_in_turns(peer: Peer) -> None:
    first = peer.wait()
    for _ in range(100):
        peer.ask(lambda: b"x")
    peer.conversation.has_turns = False
    first.set_result(None)
    await turns()
    assert len(peer.written) == 1
    for number in range(10):
        assert peer.take_turn(steps=10)
        assert len(peer.written) == 1 + 10 * (number + 1)
    assert not peer.take_turn(steps=1)


async def test_answers_that_become_ready_together_are_given_in_turns(peer: Peer) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for _ in range(100):
        peer.ask(lambda: deferred(ready), lane=None)
    peer.conversation.has_turns = False
    ready.set_result(None)
    await turns()
    assert peer.written == []
    for number in range(10):
        assert peer.take_turn(steps=10) == (number < 9)
        assert len(peer.written) == 10 * (number + 1)


async def test_requests_that_wait_for_the_same_thing_are_one_waiter(peer: Peer) -> None:
    class Counted(asyncio.Future[None]):
        waiters = 0

        def add_done_callback(self, *words: Any, **named: Any) -> None:
            self.waiters += 1
            super().add_done_callback(*words, **named)

    first, second = Counted(), Counted()
    for ready in [first] * 50 + [second] * 50 + [first]:
        peer.ask(lambda ready=ready: deferred(ready), lane=None)
    second.set_result(None)
    await turns()
    assert peer.written == [], "the answers keep their order"
    first.set_result(None)
    await turns()
    assert b"".join(peer.written) == b"deferred" * 101
    assert (first.waiters, second.waiters) == (2, 1)


async def test_what_comes_while_others_wait_for_their_turn_waits_behind_them(peer: Peer) -> None:
    first = peer.wait()
    for _ in range(20):
        peer.ask(lambda: b"before")
    peer.conversation.has_turns = False
    first.set_result(None)
    await turns()
    peer.ask(lambda: b"after")
    while peer.take_turn(steps=1):
        pass
    assert peer.written == [b"waited", *[b"before"] * 20, b"after"]


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
