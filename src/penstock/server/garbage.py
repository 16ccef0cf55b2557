"""When the interpreter looks for cycles of garbage, so that it never holds the event loop for long.

Nearly all that the broker makes is freed as soon as nobody has it. What is left for the collector
are cycles, as of connections that end. A full collection walks through all that is alive, though:
100 ms for a million objects, which is one large request or 10,000 topics.

So what a collection of the young found alive is set aside (`gc.freeze`), and the next one walks
through what was made since, a millisecond or a few. Were it left for a full collection to look at,
that one would walk through a multiple: Python counts what is made less what is freed, so that where
thousands of requests end as others begin, tens of thousands of objects were made between two
collections. What was set aside and then became garbage in a cycle is found when everything is
walked through again, which happens after `_BEFORE_ALL` collections: when the loop has little to do,
or after eight times as many at the latest, so that the memory of such cycles is bounded.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Final

_MADE: Final = 1_900
"""Objects made, and not freed, from one collection of the youngest to the next. Python's own 700
are about as many as 64 small requests under way: these would be walked through for nothing, as they
are freed when they are answered."""
_WALKED_YOUNGEST: Final = 1
"""A collection of the young walks through what so many collections of the youngest left, and what
was made since."""
_YOUNG: Final = 1
"""The generation of which what is alive is set aside, so that there is nothing in the next one."""

_BEFORE_ALL: Final = 384
_AT_LATEST: Final = 8 * _BEFORE_ALL

_LOOK_SECONDS: Final = 1.0
_IDLE_SHARE: Final = 0.05
"""Of the processor's time: below it the loop has little to do."""


class Garbage:
    """The collector's ways while an event loop runs in this thread, from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._collections = 0
        self._timer: asyncio.TimerHandle | None = None
        self._used = 0.0
        self._thresholds = gc.get_threshold()

    def start(self) -> None:
        """Set aside what is there, garbage too: to look for it would take 20 ms of every start."""
        gc.freeze()
        # The collector waits for a quarter of what the last full collection found: nothing now.
        gc.collect()
        gc.enable()
        gc.set_threshold(_MADE, _WALKED_YOUNGEST)
        gc.callbacks.append(self._collected)
        self._look_later()

    def stop(self) -> None:
        """Leave the collector as it was found."""
        if self._timer is not None:
            self._timer.cancel()
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] >= _YOUNG:
            self._collections += 1
            gc.freeze()

    def _look_later(self) -> None:
        self._used = time.thread_time()
        self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        is_idle = time.thread_time() - self._used < _IDLE_SHARE * _LOOK_SECONDS
        if self._collections >= (_BEFORE_ALL if is_idle else _AT_LATEST):
            self._collect_all()
        self._look_later()

    def _collect_all(self) -> None:
        gc.unfreeze()
        gc.collect()  # What it finds alive is set aside again.
        gc.collect()
        self._collections = 0
