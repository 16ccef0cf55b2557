"""Goal: time in which the process did not run is no client's silence.

Method: a loop whose clock the test turns; it makes calls as late as the test wants.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING, cast

import pytest

from group_house import VirtualTimer
from penstock import deadlines, limits
from penstock.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable

DELAY = 30
STOPPED = 20


class StoppableLoop:
    """As much of an event loop as timers need."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._number = itertools.count()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heapq.heappush(self._timers, (self.now + delay, next(self._number), timer))
        return timer

    def run(self, seconds: float) -> None:
        """Make each call when it is due."""
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now = max(self.now, self._timers[0][0])
            self._call_first()
        self.now = end

    def stop(self, seconds: float) -> None:
        """Make no call for so long, and then all that are due."""
        self.now += seconds
        while self._timers and self._timers[0][0] <= self.now:
            self._call_first()

    def _call_first(self) -> None:
        callback = heapq.heappop(self._timers)[2].callback
        if callback:
            callback()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> StoppableLoop:
    made = StoppableLoop()
    running = cast("asyncio.AbstractEventLoop", made)
    monkeypatch.setattr(deadlines.asyncio, "get_running_loop", lambda: running)
    return made


def test_a_deadline_comes_when_it_is_due(loop: StoppableLoop) -> None:
    called: list[float] = []
    Deadlines().call_later(DELAY, lambda: called.append(loop.now))
    loop.run(DELAY - 1)
    assert not called
    loop.run(2)
    assert called == [DELAY]


def test_time_in_which_the_process_was_stopped_is_added(loop: StoppableLoop) -> None:
    called: list[float] = []
    Deadlines().call_later(DELAY, called.append, "over")
    loop.run(DELAY - 1)
    loop.stop(1 + STOPPED)
    assert not called
    loop.run(STOPPED - 1)
    assert not called
    loop.run(1)
    assert called == ["over"]


def test_nobody_has_more_than_its_time_anew(loop: StoppableLoop) -> None:
    """A machine that slept for a night does not wait a day for a client that is gone."""
    called: list[str] = []
    Deadlines().call_later(DELAY, called.append, "over")
    loop.stop(100 * DELAY)
    assert not called
    loop.run(DELAY)
    assert called == ["over"]


def test_a_busy_loop_puts_nothing_off(loop: StoppableLoop) -> None:
    called: list[str] = []
    Deadlines().call_later(DELAY, called.append, "over")
    loop.stop(DELAY + limits.UNHEARD_SECONDS)
    assert called == ["over"]


def test_a_cancelled_deadline_never_comes(loop: StoppableLoop) -> None:
    called: list[str] = []
    put_off = Deadlines().call_later(DELAY, called.append, "over")
    loop.stop(DELAY + STOPPED)
    put_off.cancel()
    loop.run(10 * DELAY)
    assert not called
