"""Threads that wait for the disk, and the one way in which the event loop hears what they did.

A change of threads costs as much as several small requests do. So a job is one entry in one queue,
and of all that ended before the loop came round to it, it hears in one turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar

from penstock import limits
from penstock.parties import ASKING, NOBODY, Line

ResultT = TypeVar("ResultT")

_HEARD_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
"""How long the loop listens at a stretch: of a thousand flushes it may hear at once."""


class News:
    """What threads have to say to one event loop: functions for it to call, in their order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_announced = False

    def add(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have the loop call a function soon. Any thread may say so."""
        self._calls.append((call, arguments))
        if not self._is_announced:
            self._is_announced = True
            with suppress(RuntimeError):  # The loop is closed: there are no waiters any more.
                self.loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        self._is_announced = False  # Before the look: what comes after it is announced again.
        until = perf_counter() + _HEARD_SECONDS
        try:
            for _ in range(len(self._calls)):
                call, arguments = self._calls.popleft()
                call(*arguments)
                if perf_counter() >= until:
                    break
        finally:
            # Also where one has failed, which the others are not to blame for.
            if self._calls:
                self._is_announced = True
                self.loop.call_soon(self._hear)


class Job:
    """Something that a thread does once."""

    __slots__ = ("_ended", "_run", "error")

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._ended = threading.Lock()
        self._ended.acquire()
        self.error: BaseException | None = None
        """What it failed with, once it has ended; None where it succeeded."""

    @property
    def has_ended(self) -> bool:
        return not self._ended.locked()

    def wait(self) -> None:
        """Block until it has ended."""
        with self._ended:
            pass

    def do(self) -> None:
        """Called once, by its thread."""
        try:
            self._run()
        except BaseException as error:
            self.error = error
        finally:
            self._run = _nothing  # What was raised knows this frame, and may be known there.
            self._ended.release()


Then: TypeAlias = Callable[[Job], None]
Entry: TypeAlias = tuple[Job, Then | None]


class Threads:
    """Up to so many threads that do jobs; while they may be more, one of them is always free.

    A quarter of them is for parties of which no other job is being done: a few clients that write
    to thousands of logs would have them all wait for the disk, each for many milliseconds.

    A thread that takes the place of the last free one starts the next: whoever starts a thread
    waits until it runs, which takes milliseconds on a busy machine, and may not be the event loop.
    """

    def __init__(self, most: int, name: str) -> None:
        assert most > 0, "a job needs a thread"
        self._most = most
        self._name = name
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._is_closing = False
        self._line: Line[Entry] = Line()
        self._jobs: SimpleQueue[bool] = SimpleQueue()
        """True for each job in line, and False for each thread that is to end."""
        self._free: deque[None] = deque()
        """As many entries as threads have no job."""
        self._shared = most - most // 4
        """How many do jobs of parties that have another one done."""
        self._turns = threading.Lock()
        self._at_work: dict[str, int] = {}
        """How many jobs of each party are being done."""
        self._busy = 0
        """How many are in all."""
        self._barred = 0
        """Jobs in line that none of `_jobs` stands for: they wait until others have ended."""
        self._keep_one_free()

    def do(self, run: Callable[[], None], then: Then | None = None, party: str = NOBODY) -> Job:
        """Have a thread do something for a party, and call `then` in that thread once it ended."""
        job = Job(run)
        self._line.put((job, then), party)
        self._jobs.put(True)
        return job

    async def done(
        self, news: News, work: Callable[[], ResultT], *, if_awaited: bool = False
    ) -> ResultT:
        """Return what `work` returns, which the loop of `news` hears of. Raises what it raises.

        It is done whoever leaves, or with `if_awaited` only where it had begun.
        """
        ended: asyncio.Future[ResultT] = news.loop.create_future()
        try:
            self.do(partial(_outcome, news, ended, work, if_awaited), party=ASKING.get())
            return await ended
        finally:
            del ended  # It knows what was raised, which knows this frame.

    def close(self) -> None:
        """Return when all jobs are done."""
        with self._starting, self._turns:
            self._is_closing = True
            for _ in range(self._barred):
                self._jobs.put(True)
            self._barred = 0
        for _ in self._threads:
            self._jobs.put(False)
        for thread in self._threads:
            thread.join()

    def _keep_one_free(self) -> None:
        with self._starting:
            if self._free or self._is_closing or len(self._threads) == self._most:
                return
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._free.append(None)
            try:
                thread.start()
            except RuntimeError:  # The system gives no more: jobs wait for those that there are.
                self._free.pop()
                if not self._threads:
                    raise
            else:
                self._threads.append(thread)

    def _work(self) -> None:
        while self._jobs.get():
            self._free.pop()
            taken = self._taken()
            if taken is not None:
                if not self._free:
                    self._keep_one_free()
                (job, then), party = taken
                job.do()
                self._ended(party)
                if then is not None:
                    then(job)
                del job, then  # While it waits, it keeps nothing alive.
            del taken
            self._free.append(None)

    def _taken(self) -> tuple[Entry, str] | None:
        """Take the next job, and say whose it is; None where all in line have to wait."""
        with self._turns:
            is_full = self._busy >= self._shared and not self._is_closing
            taken = self._line.take_but(self._at_work if is_full else ())
            if taken is None:
                self._barred += 1
            else:
                self._busy += 1
                self._at_work[taken[1]] = self._at_work.get(taken[1], 0) + 1
            return taken

    def _ended(self, party: str) -> None:
        with self._turns:
            self._busy -= 1
            left = self._at_work.pop(party) - 1
            if left:
                self._at_work[party] = left
            if self._barred:
                self._barred -= 1
                self._jobs.put(True)


def _nothing() -> None:
    """What is left to do of a job that has ended."""


def _outcome(
    news: News, ended: asyncio.Future[ResultT], work: Callable[[], ResultT], if_awaited: bool
) -> None:
    if if_awaited and ended.cancelled():
        return
    try:
        news.add(_succeed, ended, work())
    except BaseException as error:
        news.add(_fail, ended, error)
    finally:
        del ended  # See `Threads.done`.


def _succeed(ended: asyncio.Future[ResultT], found: ResultT) -> None:
    if not ended.done():
        ended.set_result(found)


def _fail(ended: asyncio.Future[ResultT], error: BaseException) -> None:
    if not ended.done():
        ended.set_exception(error)
