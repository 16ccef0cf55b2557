"""How long the event loop is held at a stretch by one connection's requests.

What counts is the processor time of the loop's thread in one pass of the loop, so that a machine
that others use too makes no stretch longer; and it is told in seconds of the machine that the bars
were set on, so that a slower one doesn't either. A frame goes straight into the pipeline of a
session: what the test itself does on the loop is outside of what is measured.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from conversation import Conversation
from penstock.server.garbage import Garbage
from penstock.session import Buffers, Session

ResultT = TypeVar("ResultT")
WAIT_SECONDS = 120
UNIT_SECONDS = 0.0006
"""What a unit of work takes on the machine that the bars were set on."""


def slowness() -> float:
    """How much more processor time something takes here than on that machine; 1 at least."""
    return max(1.0, min(_unit() for _ in range(10)) / UNIT_SECONDS)


def _unit() -> float:
    began = time.thread_time()
    texts: dict[int, str] = {}
    for number in range(5_000):
        texts[number] = f"{number}"
    return time.thread_time() - began


class MeasuredLoop(asyncio.SelectorEventLoop):
    """Knows the longest of its passes, in seconds of processor time; `longest` may be reset."""

    longest = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._slowness = slowness()

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]  # asyncio's own, where one pass is
        self.longest = max(self.longest, (time.thread_time() - began) / self._slowness)


def run(work: Callable[[], Coroutine[Any, Any, ResultT]], *, collects: bool) -> ResultT:
    """Run a test on a measured loop, with the collector's ways of a server or without it.

    A collection takes a few milliseconds, and whose turn it is in is chance.
    """

    async def tended() -> ResultT:
        garbage = Garbage()
        garbage.start()
        if not collects:
            gc.disable()
        try:
            return await work()
        finally:
            gc.enable()
            garbage.stop()

    with asyncio.Runner(loop_factory=MeasuredLoop) as runner:
        return runner.run(tended())


class Asker:
    """One connection; it keeps nothing of the answers."""

    def __init__(self, session: Session, is_last: Callable[[bytes], bool] = lambda _: True) -> None:
        """`is_last` says of what is written whether it is the end of what was asked for."""
        self._is_last = is_last
        self._conversation = Conversation(session, self._written, self._failed)
        self._answered = asyncio.Event()
        self._failure: Exception | None = None
        self.longest = 0.0

    async def stretch(self, *frames: bytes | bytearray | memoryview) -> float:
        """Have frames answered, and return the seconds of the longest stretch until then.

        Raises what the request failed with.
        """
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MeasuredLoop)
        self._answered.clear()
        self._failure = None
        for frame in frames:
            loop.call_soon(self._conversation.take, bytearray(frame))
        await asyncio.sleep(0)
        loop.longest = 0.0
        async with asyncio.timeout(WAIT_SECONDS):
            await self._answered.wait()
        # What is freed behind an answer counts, too.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.longest = loop.longest
        if self._failure is not None:
            raise self._failure
        return self.longest

    def _written(self, parts: Buffers) -> None:
        assert parts
        if self._is_last(parts[-1]):
            self._answered.set()

    def _failed(self, error: Exception) -> None:
        self._failure = error
        self._answered.set()
