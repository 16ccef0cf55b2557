"""How much of large frames is received in one pass of the event loop, by all connections together.

A socket has megabytes ready for a buffer that takes them, and most of that buffer is memory that
nobody has touched before: 4 ms for 1.8 MB. From twenty clients that sent large frames at a time,
each pass took 80 ms.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Final, Protocol

from penstock import limits

_SHARE_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
_TOGETHER: Final = 2
"""How many go on in one pass: each receives once before it can be asked what its share was."""


class Receiver(Protocol):
    """One connection, as far as its large frames are concerned."""

    def receive_on(self) -> None:
        """Its share is renewed; it may have been closed meanwhile."""


class Receiving:
    """The shares of all connections of one server, which go on in rotation."""

    def __init__(self) -> None:
        self._seconds_left = _SHARE_SECONDS
        self._began = 0.0
        self._waiting: deque[Receiver] = deque()
        self._pass_is_due = False

    def begin(self) -> None:
        """The socket of somebody writes into a large frame now."""
        self._began = perf_counter()

    def has_time_left(self, receiver: Receiver) -> bool:
        """Return whether whoever has just received may do so again in this pass.

        Else it receives nothing until `receive_on` is called.
        """
        self._seconds_left -= perf_counter() - self._began
        self._begin_pass_soon()
        if self._seconds_left > 0:
            return True
        self._waiting.append(receiver)
        return False

    def _begin_pass_soon(self) -> None:
        if not self._pass_is_due:
            self._pass_is_due = True
            asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        self._pass_is_due = False
        self._seconds_left = _SHARE_SECONDS
        for _ in range(min(_TOGETHER, len(self._waiting))):
            self._waiting.popleft().receive_on()
        if self._waiting:
            self._begin_pass_soon()
