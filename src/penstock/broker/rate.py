"""How much of something there is a second."""

from __future__ import annotations

from typing import Final

_WINDOW_SECONDS: Final = 60
"""As Pulsar's statsUpdateFrequencyInSecs."""


class Rate:
    """Over the last one to two minutes, or the time that there is. Times are in seconds of a clock
    that only goes forward.
    """

    __slots__ = ("_began", "_count", "_count_before", "_seconds_before")

    def __init__(self, now: float) -> None:
        self._began = now
        self._count = 0
        self._count_before = 0
        self._seconds_before = 0.0

    def add(self, count: int, now: float) -> None:
        """Count so much more."""
        self._go_on(now)
        self._count += count

    def a_second(self, now: float) -> float:
        """Return the rate; what came within one second counts as of a second."""
        self._go_on(now)
        seconds = now - self._began + self._seconds_before
        return (self._count + self._count_before) / max(seconds, 1.0)

    def _go_on(self, now: float) -> None:
        """Begin another window where this one is over, and forget what was before it."""
        seconds = now - self._began
        if seconds < _WINDOW_SECONDS:
            return
        is_late = seconds >= 2 * _WINDOW_SECONDS
        self._count_before = 0 if is_late else self._count
        self._seconds_before = _WINDOW_SECONDS if is_late else seconds
        self._count = 0
        self._began = now
