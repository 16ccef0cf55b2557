"""When the interpreter looks for cycles of garbage, so that it never holds the event loop for long.

Nearly all that the broker makes is freed as soon as nobody has it. What is left for the collector
are cycles, as of connections that end. A full collection walks through all that is alive, though:
100 ms for a million objects, which is one large request or 10,000 topics.

So what a collection of the young found alive is set aside (`gc.freeze`), and the next one walks
through what was made since. Were it left for a full collection to look at, that one would walk
through a multiple.

Python counts what is made less what is freed, though: where thousands of requests end as others
begin, tens of thousands of objects are made before it counts two thousand. So many are set aside
without a look, for nearly all of them are freed as their requests end.

What was set aside and then became garbage in a cycle, or was one, is found when everything is
walked through again, which happens once Python's memory has grown by `_GROWN` pieces since the last
time: when the loop has little to do, or by eight times as many at the latest, so that the memory of
such cycles is bounded. Where it has, nothing more is set aside without a look.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from typing import Final

from penstock.server.run_queue import RunQueue

_MADE: Final = 1_900
"""Objects made, and not freed, from one collection of the youngest to the next. Python's own 700
are about as many as 64 small requests under way: these would be walked through for nothing, as they
are freed when they are answered."""
_WALKED_YOUNGEST: Final = 1
"""A collection of the young walks through what so many collections of the youngest left, and what
was made since."""
_YOUNG: Final = 1
"""The generation of which what is alive is set aside, so that there is nothing in the next one."""
_WALKED_MOST: Final = 5_000
"""Objects that a collection of the young walks through, which takes 2 ms then. To count them takes
10 ns each."""
_GROWN: Final = 500_000
"""Of some 100 bytes each. How many there are is known in 0.1 ms for 3 million, for Python asks its
pools of them; to count what was set aside takes 100 ns for each object."""
_AT_LATEST: Final = 8 * _GROWN

_LOOK_SECONDS: Final = 1.0
_IDLE_SHARE: Final = 0.05
"""Of a processor's time, had or waited for: below it the loop has little to do."""


class Garbage:
    """The collector's ways while an event loop runs in this thread, from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._kept = 0
        """Pieces of memory when everything was walked through."""
        self._timer: asyncio.TimerHandle | None = None
        self._waits = RunQueue(threading.get_native_id())
        self._wanted_before_look = self._wanted()
        self._thresholds = gc.get_threshold()

    def start(self) -> None:
        """Set aside what is there, garbage too: to look for it would take 20 ms of every start."""
        gc.freeze()
        # The collector waits for a quarter of what the last full collection found: nothing now.
        gc.collect()
        gc.enable()
        gc.set_threshold(_MADE, _WALKED_YOUNGEST)
        self._kept = sys.getallocatedblocks()
        gc.callbacks.append(self._collecting)
        self._look_later()

    def stop(self) -> None:
        """Leave the collector as it was found."""
        if self._timer is not None:
            self._timer.cancel()
            gc.callbacks.remove(self._collecting)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
        self._waits.close()

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        generation = info["generation"]
        if phase == "stop":
            if generation >= _YOUNG:
                gc.freeze()
        elif generation <= _YOUNG:
            young = sum(len(gc.get_objects(each)) for each in range(generation + 1))
            if young > _WALKED_MOST and self._grown() < _GROWN:
                gc.freeze()  # So that there is nothing to walk through.

    def _grown(self) -> int:
        return sys.getallocatedblocks() - self._kept

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        wanted, self._wanted_before_look = self._wanted_before_look, self._wanted()
        is_idle = self._wanted_before_look - wanted < _IDLE_SHARE * _LOOK_SECONDS
        if self._grown() >= (_GROWN if is_idle else _AT_LATEST):
            self._collect_all()
        self._look_later()

    def _wanted(self) -> float:
        """Return the seconds of a processor that the loop had or would have had."""
        return time.thread_time() + self._waits.seconds()

    def _collect_all(self) -> None:
        gc.unfreeze()
        gc.collect()  # What it finds alive is set aside again.
        gc.collect()
        self._kept = sys.getallocatedblocks()
