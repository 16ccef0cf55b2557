"""How much of large frames is received in one pass of the event loop, by all connections together.

A socket has megabytes ready for a buffer that takes them, and most of that buffer is memory that
nobody has touched before: 4 ms for 1.8 MB. From twenty clients that sent large frames at a time,
each pass took 80 ms.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Final, Protocol

from penstock import limits
from penstock.passes import NextPass

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
        self._next_pass = NextPass(self._pass)

    def begin(self) -> None:
        """The socket of somebody writes into a large frame now."""
        self._began = perf_counter()

    def has_time_left(self, receiver: Receiver) -> bool:
        """Return whether whoever has just received may do so again in this pass.

        Else it receives nothing until `receive_on` is called.
        """
        self._seconds_left -= perf_counter() - self._began
        self._next_pass.ask()
        if self._seconds_left > 0:
            return True
        self._waiting.append(receiver)
        return False

    def _pass(self) -> None:
        self._seconds_left = _SHARE_SECONDS
        for _ in range(min(_TOGETHER, len(self._waiting))):
            self._waiting.popleft().receive_on()
        if self._waiting:
            self._next_pass.ask()
