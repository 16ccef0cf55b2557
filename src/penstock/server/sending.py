"""What goes out of one connection: bytes through the transport, ranges of files past it.

A range goes from the page cache to the socket without passing through the broker's memory. Past the
transport means that its own buffer has to be empty, and that all that follows a range waits here. A
range whose pages are not in memory is first read by a thread, so that nobody waits for the disk.

By the time a range goes out its length was announced. If the file does not give the bytes any more,
because it was cut short or the disk fails, the connection is cut: the client sees an answer that
ends too early, and never a wrong byte.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from typing import Final, Protocol

from penstock import limits
from penstock.server.page_cache import is_cached
from penstock.session import Buffer, Buffers, FileRange, Part, in_memory

logger = logging.getLogger(__name__)

# As numbers: flags that are an enum take longer to combine than the system call they are for.
_AT_ONCE: Final = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
_MORE_FOLLOWS: Final = int(socket.MSG_MORE)

_PARTS_TOGETHER: Final = 512
"""Fewer than the parts that Linux takes in one call (IOV_MAX)."""

_CUT_SHORT: Final = "the file is shorter than it was"


class Owner(Protocol):
    """The connection, as its sender sees it."""

    def pause_writing(self) -> None:
        """The client has a lot to take before more is welcome."""

    def resume_writing(self) -> None:
        """More is welcome."""

    def abort(self, reason: str) -> None:
        """Cut the connection."""

    moved_bytes: int
    """What was received and what the client took, ever."""


class Sender:
    """Sends parts in the order of the calls."""

    def __init__(self, transport: asyncio.Transport, owner: Owner) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._owner = owner
        self._queue: deque[Part] = deque()
        self._queued_bytes = 0
        self.queued_memory = 0
        """Bytes that are not sent and take memory."""
        self._socket: socket.socket | None = None
        self._is_watching = False
        self._is_warming = False
        self._next_turn: asyncio.Handle | None = None
        self._is_paused = False
        self._is_closing = False

    def send(self, parts: Buffers) -> None:
        if not self._queue:
            bytes_only = [part for part in parts if not isinstance(part, FileRange)]
            if len(bytes_only) == len(parts):
                self._transport.writelines(bytes_only)
                return
        self._queue.extend(parts)
        self._queued_bytes += sum(map(len, parts))
        self.queued_memory += in_memory(parts)
        if not (self._is_watching or self._is_warming or self._next_turn):
            self._go_on()

    def close(self) -> None:
        """Close the transport once all is sent."""
        self._is_closing = True
        if not self._queue:
            self._transport.close()

    def drop(self) -> None:
        """The connection is gone: so is all that was not sent."""
        self._queue.clear()
        self._queued_bytes = self.queued_memory = 0
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        if self._socket is not None:
            self._watch(False)
            self._socket.close()
            self._socket = None

    def _go_on(self, read_bytes: int = 0) -> None:
        """Send a turn's worth; what is left is sent when the socket takes more.

        So many bytes of the range that is next were read a moment ago.
        """
        try:
            takes_more = self._send_some(limits.SENT_TOGETHER_BYTES, read_bytes)
        except (BlockingIOError, InterruptedError):
            takes_more = False
        except OSError as error:
            self._owner.abort(f"an answer could not be sent: {error}")
            return
        goes_on = bool(self._queue) and not self._is_warming
        self._watch(goes_on and not takes_more)
        if goes_on and takes_more:
            # To have the loop watch a socket that is ready costs more than a turn.
            self._next_turn = self._loop.call_soon(self._take_turn)
        self._pass_pressure_on()
        if self._is_closing and not self._queue:
            self._transport.close()

    def _take_turn(self) -> None:
        self._next_turn = None
        self._go_on()

    def _send_some(self, most: int, read_bytes: int) -> bool:
        """Return whether the socket seems to take more.

        Raises BlockingIOError when it takes no more, OSError when there is no more.
        """
        if self._transport.get_write_buffer_size():
            return False
        out = self._own_socket()
        while self._queue and most > 0:
            part = self._queue[0]
            if isinstance(part, FileRange):
                size = min(len(part), read_bytes or most)
                # What a thread has read goes out, even if a file system keeps nothing in memory.
                if not read_bytes and not is_cached(part.descriptor, part.position, size):
                    self._warm(part, size)
                    break
                sent = self._send_range(out, part, size)
                read_bytes = max(0, read_bytes - sent)
            else:
                sent = self._send_bytes(out)
            most -= sent
            self._queued_bytes -= sent
        return True

    def _send_bytes(self, out: socket.socket) -> int:
        buffers: list[Buffer] = []
        flags = _AT_ONCE
        for part in self._queue:
            if isinstance(part, FileRange):
                flags |= _MORE_FOLLOWS
                break
            buffers.append(part)
            if len(buffers) == _PARTS_TOGETHER:
                break
        sent = left = out.sendmsg(buffers, (), flags)
        self.queued_memory -= sent
        for buffer in buffers:
            if left < len(buffer):
                self._queue[0] = memoryview(buffer)[left:]
                break
            left -= len(buffer)
            self._queue.popleft()
        return sent

    def _send_range(self, out: socket.socket, part: FileRange, size: int) -> int:
        sent = os.sendfile(out.fileno(), part.descriptor, part.position, size)
        if sent == 0:
            raise OSError(_CUT_SHORT)
        self._owner.moved_bytes += sent
        if sent == len(part):
            self._queue.popleft()
        else:
            part.advance(sent)
        return sent

    def _own_socket(self) -> socket.socket:
        # The loop does not watch a transport's own descriptor for anyone else.
        if self._socket is None:
            descriptor = self._transport.get_extra_info("socket").fileno()
            self._socket = socket.socket(fileno=os.dup(descriptor))
            self._socket.setblocking(False)
        return self._socket

    def _watch(self, wanted: bool) -> None:
        if wanted == self._is_watching:
            return
        self._is_watching = wanted
        if wanted:
            self._loop.add_writer(self._own_socket(), self._go_on)
        elif self._socket is not None:
            self._loop.remove_writer(self._socket)

    def _pass_pressure_on(self) -> None:
        if self._queued_bytes > limits.WRITE_BUFFER_BYTES and not self._is_paused:
            self._is_paused = True
            self._owner.pause_writing()
        elif self._queued_bytes <= limits.WRITE_BUFFER_BYTES // 4 and self._is_paused:
            self._is_paused = False
            self._owner.resume_writing()

    def _warm(self, part: FileRange, size: int) -> None:
        """Have a thread read what comes next into the page cache."""
        self._is_warming = True
        read = self._loop.run_in_executor(None, os.pread, part.descriptor, size, part.position)
        read.add_done_callback(self._warmed)

    def _warmed(self, done: asyncio.Future[bytes]) -> None:
        self._is_warming = False
        error = None if done.cancelled() else done.exception()
        if not self._queue:
            return  # The connection is gone.
        if error is None and not done.result():
            error = OSError(_CUT_SHORT)
        if error is not None:
            logger.error("%s", error)
            self._owner.abort(f"an answer could not be read: {error}")
        else:
            self._go_on(len(done.result()))
