"""What a protocol and the server say to each other, without either knowing the other.

The server owns the sockets. It asks the session where a frame ends, hands over whole frames, and
writes what comes back. A session owns its protocol's state for one connection and does no I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

ResultT = TypeVar("ResultT")

Buffer: TypeAlias = bytes | bytearray | memoryview
Buffers: TypeAlias = Sequence[Buffer]
"""Parts of one answer, written in order and without being joined."""


class PeerError(Exception):
    """The peer's bytes can't be answered in its protocol, and the connection is closed.

    The reason is for the log line of an operator, so it names what was seen and what to do.
    """


class Deferred(Generic[ResultT]):
    """An answer that waits for one future only, so that nobody needs a task to wait for it.

    `make` is called once, when `ready` is done, with what `ready` failed with or None. Nothing
    cancels it, so `ready` is something that ends whatever the client does: a flush, for one.
    """

    __slots__ = ("make", "ready")

    def __init__(
        self, ready: asyncio.Future[None], make: Callable[[BaseException | None], ResultT]
    ) -> None:
        self.ready = ready
        self.make = make

    def result(self) -> ResultT:
        """Return the answer, now that `ready` is done. Raises what `make` raises."""
        return self.make(self.ready.exception())

    def __await__(self) -> Generator[Any, None, ResultT]:
        yield from asyncio.wait((self.ready,)).__await__()
        return self.result()


class Transport(Protocol):
    """The server's side of one connection, as a session sees it."""

    @property
    def peer(self) -> str:
        """Address and port of the client, as `host:port`."""

    @property
    def local_address(self) -> tuple[str, int]:
        """Host and port that the client connected to: what to advertise to it."""

    def write(self, parts: Buffers) -> None:
        """Queue bytes for the client, at once and in the order of the calls."""

    async def writable(self) -> None:
        """Return when the client has taken enough of what was queued for more to be welcome."""

    def close(self, reason: str) -> None:
        """Close after what is queued was written; `reason` goes to the log."""


class Session(Protocol):
    """One client's conversation in one protocol."""

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that starts with `head`, or None when more bytes are needed.

        The size counts everything from the first byte of `head`. Raises PeerError when
        these bytes are no frame of this protocol or the frame is over its limit: the check comes
        before memory is taken for it.
        """

    def receive(self, frame: memoryview) -> Awaitable[Buffers | None] | Buffers | None:
        """Take one whole frame, of the size that `frame_size` told.

        The memory behind `frame` is writable and is not used again, so it may be kept or patched.
        An answer that is awaitable is awaited beside the next frames (a Deferred at less cost than
        others); the answers are written in the order of their frames all the same. None sends
        nothing. Raises PeerError.
        """

    def close(self) -> None:
        """The connection is gone: give back what it held. Called once, and last."""
