"""Notices when one turn of the event loop took too long, and says what held it up.

A timer on the loop is due at every beat; how late it is says how long the turn before it took. A
thread looks on meanwhile: when the beat is late it notes what the loop's thread is doing.

A process that gets no processor is late too, and nobody here is to blame for that. The kernel says
how long a thread was ready to run and did not; that time does not count. What is left is either
busy (its own processor time) or waiting: in a call that blocks, or for another thread that holds
the interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from penstock import limits
from penstock.server.pipeline import Pipeline
from penstock.server.run_queue import RunQueue

logger = logging.getLogger(__name__)

STALL: Final = "the event loop was held up for"
"""How the log line of a stall begins."""

_LIMIT_SECONDS: Final = limits.LOOP_TURN_MILLISECONDS / 1000
_BEAT_SECONDS: Final = _LIMIT_SECONDS / 2
_FRAMES_SHOWN: Final = 8
_SOURCES: Final = Path(__file__).parents[2]


class Watchdog:
    """Watches the event loop that runs in the current thread, from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._waits = RunQueue(threading.get_native_id())
        self._stopped = threading.Event()
        self._onlooker = threading.Thread(target=self._look_on, name="watchdog", daemon=True)
        self._timer: asyncio.TimerHandle | None = None
        self._seen = ""

    def start(self) -> None:
        self._begin_beat()
        self._onlooker.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
            self._onlooker.join()
        self._waits.close()

    # On the event loop.

    def _begin_beat(self) -> None:
        self._timer = self._loop.call_later(_BEAT_SECONDS, self._beat)
        self._due = time.perf_counter() + _BEAT_SECONDS
        self._busy_before = time.thread_time()
        self._queued_before = self._waits.seconds()

    def _beat(self) -> None:
        late = time.perf_counter() - self._due
        if late > _LIMIT_SECONDS:
            self._report(late)
        self._begin_beat()

    def _report(self, late: float) -> None:
        seen, self._seen = self._seen, ""
        held_up = late - (self._waits.seconds() - self._queued_before)
        busy = min(held_up, time.thread_time() - self._busy_before)
        if held_up > _LIMIT_SECONDS:
            logger.warning(
                "%s %.0f ms (busy %.0f ms, waiting %.0f ms) by %s",
                STALL,
                1000 * held_up,
                1000 * busy,
                1000 * (held_up - busy),
                seen or "something that was not seen",
            )

    # In the thread that looks on.

    def _look_on(self) -> None:
        while not self._stopped.wait(_BEAT_SECONDS):
            late = time.perf_counter() - self._due
            if late < 0:
                self._seen = ""
            elif late > _BEAT_SECONDS / 2 and not self._seen:
                # It may go wrong: these frames go on meanwhile.
                with contextlib.suppress(Exception):
                    self._seen = self._what_runs()

    def _what_runs(self) -> str:
        frame = sys._current_frames().get(self._thread_id)
        task = asyncio.current_task(self._loop)
        whom = task.get_name() if task is not None else ""
        lines: list[str] = []
        while frame is not None:
            whom = _served_by(frame) or whom
            if len(lines) < _FRAMES_SHOWN:
                lines.append(_place(frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return f"{whom or 'a callback'}: {' < '.join(lines)}"


def _served_by(frame: FrameType) -> str:
    if not frame.f_code.co_filename.endswith("pipeline.py"):
        return ""
    pipeline = frame.f_locals.get("self")
    return pipeline.name if isinstance(pipeline, Pipeline) else ""


def _place(code: CodeType, line: int) -> str:
    path = Path(code.co_filename)
    shown = path.relative_to(_SOURCES) if path.is_relative_to(_SOURCES) else path.name
    return f"{code.co_name} ({shown}:{line})"
