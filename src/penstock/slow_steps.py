"""Says in the log what goes on where it takes longer than a second, and how long it took."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock import limits

logger = logging.getLogger(__name__)


class _Step:
    def __init__(self, what: str, arguments: tuple[object, ...]) -> None:
        self._what = what
        self._arguments = arguments
        self._began = time.monotonic()
        self._was_said = False

    def say(self) -> None:
        self._was_said = True
        logger.info(f"{self._what} takes a while", *self._arguments)

    def end(self) -> None:
        if self._was_said:
            seconds = time.monotonic() - self._began
            logger.info(f"{self._what} took %.1f s", *self._arguments, seconds)


@contextmanager
def waiting_for(what: str, *arguments: object) -> Iterator[None]:
    """Surround what is awaited on the event loop; `what` is a format as of a log line."""
    step = _Step(what, arguments)
    timer = asyncio.get_running_loop().call_later(limits.SLOW_STEP_SECONDS, step.say)
    try:
        yield
    finally:
        timer.cancel()
        step.end()


@contextmanager
def blocked_by(what: str, *arguments: object) -> Iterator[None]:
    """As `waiting_for`, of what blocks. It costs a thread, so it is for the start only."""
    step = _Step(what, arguments)
    timer = threading.Timer(limits.SLOW_STEP_SECONDS, step.say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # It may be about to say so.
        step.end()
