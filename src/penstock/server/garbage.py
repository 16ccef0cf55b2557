"""When the interpreter looks for cycles of garbage, so that it never holds the event loop for long.

Nearly all that the broker makes is freed as soon as nobody has it. What is left for the collector
are cycles, as of connections that end. A full collection walks through all that is alive, though:
100 ms for a million objects, which is one large request or 10,000 topics.

So what a collection of the young found alive is set aside (`gc.freeze`), and the next one walks
through what was made since. Were it left for a full collection to look at, that one would walk
through a multiple.

Python counts what is made less what is freed, though: where thousands of requests end as others
begin, tens of thousands of objects are made before it counts two thousand. So a loop that is busy
looks every few milliseconds how many there are.

What was set aside and then became garbage in a cycle is found when everything is walked through
again, which happens once `_SET_ASIDE` objects were: when the loop has little to do, or once eight
times as many were at the latest, so that the memory of such cycles is bounded.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
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
_OLDER: Final = 2
"""The generation of what a collection of the young has just found alive."""

_WALKED_MOST: Final = 5_000
"""Objects that a busy loop leaves to the next collection, which takes 2 ms then. To count them
takes 10 ns each."""
_SET_ASIDE: Final = 500_000
_AT_LATEST: Final = 8 * _SET_ASIDE

_BEAT_SECONDS: Final = 0.05
_BUSY_BEAT_SECONDS: Final = 0.01
_BUSY_SECONDS: Final = 0.005
"""Of the processor's time, between two beats: above it the loop is busy."""
_LOOK_SECONDS: Final = 1.0
_IDLE_SHARE: Final = 0.05
"""Of a processor's time, had or waited for: below it the loop has little to do."""


class Garbage:
    """The collector's ways while an event loop runs in this thread, from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._set_aside = 0
        """Objects, since everything was walked through."""
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._waits = RunQueue(threading.get_native_id())
        self._used_before_beat = time.thread_time()
        self._wanted_before_look = self._wanted()
        self._thresholds = gc.get_threshold()

    def start(self) -> None:
        """Set aside what is there, garbage too: to look for it would take 20 ms of every start."""
        gc.freeze()
        # The collector waits for a quarter of what the last full collection found: nothing now.
        gc.collect()
        gc.enable()
        gc.set_threshold(_MADE, _WALKED_YOUNGEST)
        gc.callbacks.append(self._collected)
        self._later(self._beat, _BEAT_SECONDS)
        self._later(self._look, _LOOK_SECONDS)

    def stop(self) -> None:
        """Leave the collector as it was found."""
        if self._timers:
            for timer in self._timers.values():
                timer.cancel()
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
        self._waits.close()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" or info["generation"] < _YOUNG:
            return
        if info["generation"] == _YOUNG:
            self._set_aside += len(gc.get_objects(_OLDER))
        gc.freeze()

    def _later(self, work: Callable[[], None], seconds: float) -> None:
        self._timers[work] = self._loop.call_later(seconds, work)

    def _beat(self) -> None:
        used, self._used_before_beat = self._used_before_beat, time.thread_time()
        is_busy = self._used_before_beat - used > _BUSY_SECONDS
        if is_busy and sum(len(gc.get_objects(each)) for each in (0, _YOUNG)) > _WALKED_MOST:
            gc.collect(_YOUNG)
        self._later(self._beat, _BUSY_BEAT_SECONDS if is_busy else _BEAT_SECONDS)

    def _look(self) -> None:
        wanted, self._wanted_before_look = self._wanted_before_look, self._wanted()
        is_idle = self._wanted_before_look - wanted < _IDLE_SHARE * _LOOK_SECONDS
        if self._set_aside >= (_SET_ASIDE if is_idle else _AT_LATEST):
            self._collect_all()
        self._later(self._look, _LOOK_SECONDS)

    def _wanted(self) -> float:
        """Return the seconds of a processor that the loop had or would have had."""
        return time.thread_time() + self._waits.seconds()

    def _collect_all(self) -> None:
        gc.unfreeze()
        gc.collect()  # What it finds alive is set aside again.
        gc.collect()
        self._set_aside = 0
