"""Which tasks go on in which pass of the event loop, where very many could at once.

What many requests wait for may be there for all of them together, and asyncio has them all go on in
the next pass: of four connections that subscribe a thousand times each, four thousand requests wait
for one commit of the database. So a pass has a share of time for tasks that go on. Those beyond it
stand in line, where each party, a client's connection, has its turn before any has a second; in
each pass that follows go on as many as the share lasts for, by what they took before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final
from weakref import WeakKeyDictionary

from penstock import limits
from penstock.parties import ASKING, Line
from penstock.passes import NextPass

_SHARE_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
_NOTICED_SECONDS_LEFT: Final = _SHARE_SECONDS * 7 / 8
"""Below it, it is worth an entry in the event loop to begin a new pass."""
_TOGETHER_MOST: Final = 64


class GoingOn:
    """Of one event loop, the time that tasks have to go on in this pass, and those that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: Line[asyncio.Future[None]] = Line()
        self._seconds_left = _SHARE_SECONDS
        self._together = 1
        """How many go on in one pass."""
        self._in_step = False
        self._next_pass = NextPass(self._pass)

    def turn(self) -> asyncio.Future[None] | None:
        """Return what a task waits for before its next step; None where that may be at once."""
        if self._in_step or (self._seconds_left > 0 and not self._line):
            return None
        turn: asyncio.Future[None] = self._loop.create_future()
        self._line.put(turn, ASKING.get())
        self._next_pass.ask()
        return turn

    def step(self, work: Coroutine[Any, Any, Any], error: BaseException | None = None) -> Any:
        """Have a coroutine go on, with an error where what it waited for failed, and return what it
        waits for next. Raises what it raises.
        """
        is_outermost, self._in_step = not self._in_step, True
        began = perf_counter()
        try:
            return work.send(None) if error is None else work.throw(error)
        finally:
            del error  # It may be what is raised, which knows this frame.
            if is_outermost:
                self._in_step = False
                self._seconds_left -= perf_counter() - began
                if self._seconds_left < _NOTICED_SECONDS_LEFT:
                    self._next_pass.ask()

    def _pass(self) -> None:
        was_too_long = self._seconds_left < 0
        self._seconds_left = _SHARE_SECONDS
        together = self._together // 2 if was_too_long else self._together + 1
        self._together = min(max(together, 1), _TOGETHER_MOST)
        count = self._together
        while count and self._line:
            turn = self._line.take()
            if not turn.done():  # Its task was not cancelled meanwhile.
                turn.set_result(None)
                count -= 1
        if self._line:
            self._next_pass.ask()  # Behind those that go on now.


_of_loops: Final = WeakKeyDictionary[asyncio.AbstractEventLoop, GoingOn]()


def going_on() -> GoingOn:
    """Return that of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = GoingOn(loop)
    return found
