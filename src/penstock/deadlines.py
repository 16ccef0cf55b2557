"""Calls for clients that have been silent for too long; what nobody could hear is no silence.

A process that is stopped for a while, or whose machine sleeps, reads nothing meanwhile. When it
goes on, the event loop makes the calls that are due before it has read what clients sent long ago:
all of them would be taken for dead at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock import limits

if TYPE_CHECKING:
    from collections.abc import Callable


def unheard_seconds(due: float, now: float) -> float:
    """Return how long nobody was heard, of a call that was due at a time and is made now.

    That is 0 where it comes no later than a busy event loop makes it.
    """
    late = now - due
    return late if late > limits.UNHEARD_SECONDS else 0.0


class Deadline:
    """One call; where it comes late it is put off by as much, and at most by its own delay."""

    __slots__ = ("_args", "_callback", "_delay", "_due", "_loop", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        delay: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
    ) -> None:
        self._loop = loop
        self._delay = delay
        self._callback = callback
        self._args = args
        self._set(delay)

    def cancel(self) -> None:
        self._timer.cancel()

    def _set(self, delay: float) -> None:
        self._due = self._loop.time() + delay
        self._timer = self._loop.call_later(delay, self._is_due)

    def _is_due(self) -> None:
        put_off = min(unheard_seconds(self._due, self._loop.time()), self._delay)
        if put_off:
            self._set(put_off)
        else:
            self._callback(*self._args)


class Deadlines:
    """Implements penstock.broker.clock.Clock on the event loop that runs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Deadline:
        return Deadline(self._loop, delay, callback, args)
