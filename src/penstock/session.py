"""What a protocol and the server say to each other, without either knowing the other.

The server owns the sockets. It asks the session where a frame ends, hands over whole frames, has
their requests carried out, and writes the answers in the order of the frames. A session owns its
protocol's state for one connection and does no I/O.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import CoroutineType, coroutine
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from penstock.tasks import is_first_step

ReplyT = TypeVar("ReplyT")
ReplyT_co = TypeVar("ReplyT_co", covariant=True)

Buffer: TypeAlias = bytes | bytearray | memoryview


class OpenFile(Protocol):
    """A file that stays open while somebody holds it."""

    @property
    def descriptor(self) -> int: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...


class FileRange:
    """Bytes of a file that reach the client without passing through the broker's memory.

    They were found sound before. The file stays open, and its bytes where they are, while this
    exists, whatever becomes of its name. Of batches of a log, `following` is the offset behind.
    """

    __slots__ = ("_file", "_size", "descriptor", "following", "position")

    def __init__(self, file: OpenFile, position: int, size: int) -> None:
        file.hold()
        self._file = file
        self._size = size
        self.descriptor = file.descriptor
        self.position = position
        self.following: int | None = None

    def __len__(self) -> int:
        return self._size

    def __del__(self) -> None:
        self._file.release()

    @property
    def next_offset(self) -> int:
        """The offset behind the batches that it is."""
        assert self.following is not None, "a log says where its ranges end"
        return self.following

    def advance(self, size: int) -> None:
        """The first `size` bytes are sent."""
        self.position += size
        self._size -= size


Part: TypeAlias = Buffer | FileRange
Buffers: TypeAlias = Sequence[Part]
"""Parts of one answer, sent in order and without being joined.

A session makes file ranges only for a transport that sends files.
"""


def in_memory(parts: Buffers) -> int:
    """Return how many bytes of memory the parts take."""
    return sum([len(part) for part in parts if type(part) is not FileRange])


class PeerError(Exception):
    """The peer's bytes can't be answered in its protocol, and the connection is closed.

    The reason is for the log line of an operator, so it names what was seen and what to do.
    """


class Awaited(Protocol):
    """Something that ends by itself, as an `asyncio.Future` does; many may wait for the same."""

    def done(self) -> bool: ...

    def exception(self) -> BaseException | None: ...

    def add_done_callback(self, call: Callable[[Any], object], /) -> None: ...


@coroutine
def ended(awaited: Awaited) -> Generator[Any, None, None]:
    """Return when it is done, whatever its outcome. To be cancelled means nothing to it.

    Whoever did a coroutine's first step is given `awaited` itself, and needs no task for it.
    """
    if awaited.done():
        return
    if is_first_step() and not asyncio.isfuture(awaited):
        yield awaited
        return
    future = asyncio.get_running_loop().create_future()
    awaited.add_done_callback(lambda _: None if future.done() else future.set_result(None))
    yield from future


class Signal:
    """Something to wait for that may happen again: an `Awaited` once it is set, until cleared."""

    __slots__ = ("_calls", "_is_set")

    def __init__(self) -> None:
        self._calls: list[Callable[[Signal], object]] = []
        self._is_set = False

    def set(self) -> None:
        """It has happened. The callbacks are called at once."""
        if not self._is_set:
            self._is_set = True
            calls, self._calls = self._calls, []
            for call in calls:
                call(self)

    def clear(self) -> None:
        """Whatever happened is dealt with."""
        self._is_set = False

    def done(self) -> bool:
        return self._is_set

    def exception(self) -> None:
        """It never fails."""

    def add_done_callback(self, call: Callable[[Signal], object]) -> None:
        """Have `call` called when it is set. It does not raise, and does little."""
        if self._is_set:
            call(self)
        else:
            self._calls.append(call)


class Deferred(Generic[ReplyT_co]):
    """A reply that waits for one thing only, so that nobody needs a task to wait for it.

    `make` is called once, when `ready` is done, with what `ready` failed with or None. Nothing
    cancels it, so `ready` is something that ends whatever the client does: a flush, for one.
    """

    __slots__ = ("make", "ready")

    def __init__(self, ready: Awaited, make: Callable[[BaseException | None], ReplyT_co]) -> None:
        self.ready = ready
        self.make = make

    def result(self) -> ReplyT_co:
        """Return the reply, now that `ready` is done. Raises what `make` raises."""
        return self.make(self.ready.exception())

    def __await__(self) -> Generator[Any, None, ReplyT_co]:
        yield from ended(self.ready)
        return self.result()


Encoded: TypeAlias = "Buffers | CoroutineType[Any, Any, Buffers] | None"
"""What to send, or nothing; a coroutine where making it takes long, so that it goes in steps."""

Answer: TypeAlias = ReplyT | Deferred[ReplyT] | Coroutine[Any, Any, ReplyT]
"""What a handler returns: a reply, or what it comes from later; a Deferred costs less.

The first step of a coroutine runs in the turn that took the request, in no task: see
`penstock.tasks.begin`.
"""

Conflicts: TypeAlias = Sequence[Sequence[int]]
"""For each lane, the lanes whose requests may not run beside its own.

Lanes are numbered from 0. Where two requests are in lanes that are in conflict, the one that came
first ends before the other begins; conflicts are mutual. A request in no lane waits for none.
"""
NO_LANES: Final[Conflicts] = ()


class Transport(Protocol):
    """The server's side of one connection, as a session sees it."""

    @property
    def peer(self) -> str:
        """Address and port of the client, as `host:port`."""

    @property
    def address(self) -> str:
        """What stands for the client's machine: its address, or the network of an IPv6 one."""

    @property
    def local_address(self) -> tuple[str, int]:
        """Host and port that the client connected to: what to advertise to it."""

    @property
    def sends_files(self) -> bool:
        """Whether it takes file ranges too."""

    def write(self, parts: Buffers) -> None:
        """Queue bytes for the client, at once and in the order of the calls."""

    async def writable(self) -> None:
        """Return when the client has taken enough of what was queued for more to be welcome."""

    def close(self, reason: str) -> None:
        """Close after what is queued was written; `reason` goes to the log."""


class Request(Protocol[ReplyT]):
    """One request on its way from frame to answer."""

    @property
    def lane(self) -> int | None:
        """Which of the session's `conflicts` hold for it; None where it has no order to keep."""

    @property
    def held_bytes(self) -> int:
        """What it takes until it is answered, beside as many bytes as its frame has."""

    def begin(self) -> Answer[ReplyT]:
        """Start to carry it out, in its turn. Raises what `refuse` takes."""

    def encode(self, reply: ReplyT) -> Encoded:
        """Return what to send for a reply."""

    def refuse(self, error: Exception) -> Buffers | None:
        """Return what to send where this is the outcome, or None to send nothing.

        Raises `error` itself where the protocol has no answer for it; that closes the connection.
        """


class Session(Protocol):
    """One client's conversation in one protocol."""

    @property
    def conflicts(self) -> Conflicts:
        """Which requests may run side by side."""

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that starts with `head`, or None when more bytes are needed.

        The size counts everything from the first byte of `head`. Raises PeerError when
        these bytes are no frame of this protocol or the frame is over its limit: the check comes
        before memory is taken for it.
        """

    def receive(self, frame: memoryview) -> Request[Any] | None:
        """Take one whole frame, of the size that `frame_size` returned; None asks for nothing.

        The memory behind `frame` is writable and is not used again, so it may be kept or patched.
        Raises PeerError.
        """

    def close(self) -> None:
        """The connection is gone: give back what it held. Called once, and last."""
