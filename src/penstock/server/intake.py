"""Cuts what a socket delivers into whole frames, copied once at most.

Small frames arrive in a buffer that all connections share and are copied out of it. A frame that
does not fit in what was read gets a buffer of its own, and the socket then writes straight into it.
Either is as large as the frame, and what is fresh of it takes memory as the bytes arrive: to copy
it into larger ones would touch twice as much, and the first touch of a page costs more than all the
rest. A large one's is a mapping: its end leaves no piece of the heap behind.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import TypeAlias

from penstock import limits
from penstock.memory import Account
from penstock.session import PeerError
from penstock.unfilled import unfilled

FrameSize: TypeAlias = Callable[[memoryview], int | None]
_NOTHING = memoryview(b"")


class Intake:
    """The bytes of one connection between the socket and its session.

    The caller alternates `space` and `filled`, takes frames, and calls `keep` before another
    connection may use the shared buffer. As long as there may be a frame, it takes what was kept
    with `resume` and `next_frame`, and reads no more.
    """

    __slots__ = (
        "_account",
        "_filled",
        "_frame",
        "_frame_size",
        "_rest",
        "_shared",
        "_window",
        "may_have_frame",
    )

    def __init__(self, shared: memoryview, account: Account) -> None:
        self._shared = shared
        self._account = account
        self._window = _NOTHING
        self._rest: bytes | memoryview = b""
        self._frame: bytearray | mmap.mmap | None = None
        self._frame_size = 0
        self._filled = 0
        self.may_have_frame = False

    def head(self, count: int) -> bytes:
        """At most `count` first bytes of what was not taken yet."""
        if self._frame is None:
            return bytes(self._window[:count])
        return bytes(self._frame[: min(count, self._filled)])

    @property
    def held_bytes(self) -> int:
        """What is held of frames to come, as `account` has it, while nobody takes frames."""
        return self._filled if self._frame is not None else len(self._rest)

    @property
    def unfinished_bytes(self) -> int:
        """What has arrived of a frame that is not whole, once `next_frame` has returned None."""
        return self._filled if self._frame is not None else len(self._window) + len(self._rest)

    @property
    def is_within_frame(self) -> bool:
        """Whether the socket writes into a frame that has begun."""
        return self._frame is not None

    def space(self) -> memoryview:
        """Where the socket may write next. Never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        self._shared[: len(self._rest)] = self._rest
        return self._shared[len(self._rest) :]

    def filled(self, count: int) -> None:
        """The socket wrote `count` bytes to the start of the last `space`."""
        self.may_have_frame = True
        if self._frame is not None:
            self._filled += count
            self._account.take(count)
            return
        self._window = self._shared[: len(self._rest) + count]
        self._set_rest(b"")

    def next_frame(self, frame_size: FrameSize) -> memoryview | None:
        """The next whole frame, in memory of its own, or None until more has arrived."""
        self.may_have_frame = False
        if self._frame is not None:
            return self._finished_frame(self._frame)
        window = self._window
        if not window:
            return None
        size = frame_size(window)
        if size is None:
            if len(window) >= limits.FRAME_HEAD_BYTES:
                raise PeerError(f"no frame begins in the first {limits.FRAME_HEAD_BYTES} bytes")
            return None
        if size <= 0:
            raise ValueError(f"a frame of {size} bytes")
        left = len(window) - size
        if left < 0:
            self._begin_frame(size)
            return None
        self._window = window[size:]
        self.may_have_frame = left > 0
        return memoryview(bytearray(window[:size]))

    def keep(self) -> None:
        """Release the shared buffer; what was not taken is kept aside."""
        window, self._window = self._window, _NOTHING
        if not window:
            return
        # Copied once: what waits for many turns is much, and what is left of it in the end little.
        is_own = window.obj is not self._shared.obj
        self._set_rest(window if is_own and self.may_have_frame else bytes(window))

    def resume(self) -> None:
        """Make what `keep` put aside available to `next_frame` again."""
        if self._rest and not self._window:
            self._window = memoryview(self._rest)
            self._set_rest(b"")

    def discard(self) -> None:
        """No more is taken."""
        self._account.take(-self.held_bytes)
        self._frame = None
        self._rest = b""
        self.may_have_frame = False

    def _set_rest(self, rest: bytes | memoryview) -> None:
        if len(rest) != len(self._rest):
            self._account.take(len(rest) - len(self._rest))
        self._rest = rest

    def _begin_frame(self, size: int) -> None:
        # A length is only a claim: the peer has to send as much as it wants us to hold.
        # What is not filled is no memory yet.
        if size > limits.FRAME_KEPT_BYTES:
            self._frame = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            self._frame = unfilled(size)
        self._frame_size = size
        self._filled = len(self._window)
        self._frame[: self._filled] = self._window
        self._account.take(self._filled)
        self._window = _NOTHING

    def _finished_frame(self, frame: bytearray | mmap.mmap) -> memoryview | None:
        if self._filled < self._frame_size:
            return None
        self._account.take(-self._filled)
        self._frame = None
        return memoryview(frame)
