"""How long a client takes to send one frame."""

from __future__ import annotations

from penstock import limits


class FrameClock:
    """Counts from the first byte of a frame, and for a connection's first one from its beginning.

    The time in which the broker does not read is not the client's. Times are seconds of the loop.
    """

    __slots__ = ("_began", "_paused", "_received")

    def __init__(self, now: float) -> None:
        self._began: float | None = now
        self._paused: float | None = None
        self._received = 0

    def received(self, count: int, now: float, *, is_another: bool) -> None:
        """`count` bytes of a frame that is not whole are here; 0 where none has begun."""
        if count == 0:
            self._began = None
        elif is_another or self._began is None:
            self._began = now
        self._received = count

    def pause(self, now: float) -> None:
        """The broker stops reading."""
        self._paused = now

    def resume(self, now: float) -> None:
        """The broker reads on."""
        if self._paused is not None and self._began is not None:
            self._began += now - self._paused
        self._paused = None

    def put_off(self, seconds: float) -> None:
        """Give the client so much more time for a frame that has begun."""
        if self._began is not None and self._paused is None:
            self._began += seconds

    def is_over(self, now: float) -> bool:
        """Whether the client has had its time."""
        if self._began is None or self._paused is not None:
            return False
        allowed = limits.FRAME_SECONDS + self._received / limits.FRAME_BYTES_A_SECOND
        return now - self._began > allowed
