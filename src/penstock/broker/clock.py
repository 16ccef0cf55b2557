"""Time as sessions, locks and group members use it, so that a test can bring its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """A call that is due."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The part of asyncio's event loop that tells time, in seconds; tests bring a virtual one."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer: ...
