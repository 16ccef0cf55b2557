"""A few threads that many clients share, so that no client's work keeps the others' from its turn.

What is begun in a thread can't be put aside, so each thread takes work up to a size of its own: the
first one only what is small, and only the last one whatever there is. Of what waits, that goes
first which would be done first if every client had a thread of its own and all of them were equally
fast: small work goes before large, and a client that had little before one that had much. (This is
self-clocked fair queueing, by S. J. Golestani, 1994.)

Their work has less of the processor than the event loop has: a loop that wakes up beside threads of
its own priority waits until one of them has had its share, which is tens of milliseconds.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from penstock.memory import Reading

ResultT = TypeVar("ResultT")

_NICENESS: Final = 5
"""A third of the loop's share where both have work. Not the least: they hold the GIL at times."""


class _Waiting(NamedTuple):
    """In the order in which they go. `place` tells those apart that are equal."""

    finish: float
    place: int
    granted: asyncio.Future[_Thread]


class _Thread:
    """One thread, what it takes at most, and who waits for work of its sizes."""

    def __init__(self, name: str, most: float) -> None:
        self.most = most
        self.is_free = True
        self.pool = ThreadPoolExecutor(1, name, initializer=_give_way)
        self.waiting: list[_Waiting] = []
        """Work that no thread before this one takes."""


class FairThreads:
    """Threads of one event loop. `sizes` are what each takes at most; the last one takes all."""

    def __init__(self, name: str, sizes: Sequence[float]) -> None:
        self._threads = [_Thread(f"{name}-{most:.0f}", most) for most in sizes]
        self._threads.append(_Thread(name, float("inf")))
        self._clock = 0.0
        """When what was begun last would be done."""
        self._done: WeakKeyDictionary[object, float] = WeakKeyDictionary()
        """When the last work of a client would be."""
        self._places = itertools.count()

    async def run(
        self, client: object, size: float, work: Callable[[], ResultT], held: Reading | None = None
    ) -> ResultT:
        """Return what `work` returns, whose `size` says how long it takes. Raises what it raises.

        A caller that leaves keeps its thread, and what it has `held`, until the work is done.
        """
        loop = asyncio.get_running_loop()
        thread = await self._granted(client, size)
        try:
            job = thread.pool.submit(work)
        except BaseException:
            self._end(thread)
            raise
        job.add_done_callback(partial(self._ended, loop, thread))
        try:
            done = asyncio.wrap_future(job)
            return await (done if held is None else held.until_done(done))
        finally:
            del job, done  # They know what was raised, which knows this frame.

    async def _granted(self, client: object, size: float) -> _Thread:
        finish = max(self._clock, self._done.get(client, 0)) + size
        self._done[client] = finish
        granted: asyncio.Future[_Thread] = asyncio.get_running_loop().create_future()
        first = next(thread for thread in self._threads if size <= thread.most)
        heapq.heappush(first.waiting, _Waiting(finish, next(self._places), granted))
        for thread in self._threads:
            self._begin(thread)
        try:
            return await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self._end(granted.result())
            raise

    def _begin(self, thread: _Thread) -> None:
        """Have a free thread begin what is the first of all that it takes."""
        while thread.is_free:
            lines = [each.waiting for each in self._threads if each.most <= thread.most]
            line = min(filter(None, lines), key=lambda waiting: waiting[0], default=None)
            if line is None:
                return
            first = heapq.heappop(line)
            if not first.granted.done():
                self._clock = first.finish
                thread.is_free = False
                first.granted.set_result(thread)

    def _ended(
        self, loop: asyncio.AbstractEventLoop, thread: _Thread, _job: Future[ResultT]
    ) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._end, thread)

    def _end(self, thread: _Thread) -> None:
        thread.is_free = True
        self._begin(thread)


def _give_way() -> None:
    """Lower this thread's priority, where a thread has one of its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
