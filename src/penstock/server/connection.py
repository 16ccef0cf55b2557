"""One client's socket: frames in, answers out in order, and pressure passed on in both directions.

What may be cancelled. A request that began runs to its end even when its client is gone: it may be
half way through changing what all share. Only its answer is dropped. What still waits
`limits.CLOSING_SECONDS` later is waiting for something to happen, not working, and is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from penstock import limits
from penstock.addresses import network_address
from penstock.server.answers import Answers
from penstock.server.frame_clock import FrameClock
from penstock.server.intake import Intake
from penstock.server.log_lines import ONCE_A_MINUTE
from penstock.server.pipeline import Pipeline
from penstock.server.progress import Progress
from penstock.server.recognise import RECOGNISED_BYTES, misplaced, recognise, unknown
from penstock.server.sending import Sender
from penstock.server.turns import Turn, UsedByOne
from penstock.server.unsent import Unsent
from penstock.session import Buffers, FileRange, Part, PeerError, Session, Transport

if TYPE_CHECKING:
    from penstock.memory import Wanted
    from penstock.server.connections import Connections

logger = logging.getLogger(__name__)

SessionFactory: TypeAlias = Callable[[Transport], Session]

_COLLECTED_SECONDS: Final = 0.004
"""How long answers of one turn wait for those of the next: to send costs like a few requests."""


class StrangerError(PeerError):
    """The client speaks another protocol than this port's."""


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection.

    A `penstock.session.Transport` for its session, an `Owner` for its pipeline, and a `Worker` in
    the turns of all connections.
    """

    def __init__(self, protocol: str, factory: SessionFactory, connections: Connections) -> None:
        self._loop = asyncio.get_running_loop()
        self._factory = factory
        self._connections = connections
        self._turns = connections.turns
        self._receiving = connections.receiving
        self._memory = connections.memory
        self._intake = Intake(connections.receive_buffer, self._memory.receiving)
        self._answers = Answers(self._queue, self._memory)
        self._outgoing: list[Part] = []
        self._outgoing_bytes = 0
        self._sent_at = 0.0
        self._unsent = Unsent()
        self._wanted: Wanted | None = None
        self._waited = 0.0
        """For memory, in seconds: for what is to be the next frame."""
        self._turn_end_is_due = False
        self._session: Session | None = None
        self._pipeline: Pipeline | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading = True
        self._may_receive = True
        """Whether its share of what is received in a pass is not used up."""
        self.in_line = False
        self.used = UsedByOne()
        self._lost = False
        self._close_reason = ""
        self.protocol = protocol
        self.peer = "?"
        self.address = "?"
        self.local_address = ("", 0)
        self.served = False
        self.last_activity = self._loop.time()
        self.frame_clock = FrameClock(self.last_activity)
        self.closing_since: float | None = None
        self.stalled_since: float | None = None
        self.moved_bytes = 0
        self.progress = Progress()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        self._sender = Sender(self._transport, self)
        peer = transport.get_extra_info("peername")
        self.peer = _written(peer)
        self.address = _network_address(peer)
        host, port = transport.get_extra_info("sockname")[:2]
        self.local_address = (self._connections.advertised_host or host, port)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        refused = self._connections.admit(self)
        if refused is not None:
            self.abort(refused)
            return
        self.used = self._connections.newcomers.one_more(self.address)
        try:
            session = self._factory(self)
        except Exception as error:
            self.failed(error)
            return
        self._session = session
        self._pipeline = Pipeline(session, self._answers, self, f"{self.protocol} {self.peer}")

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        space = self._intake.space()
        if self._intake.is_within_frame:
            space = space[: limits.RECEIVED_TOGETHER_BYTES]
            self._receiving.begin()
        memory = self._memory
        if memory.used >= memory.ample:
            return space[: max(limits.LEAST_MEMORY_BYTES, memory.room(self.held_bytes))]
        return space

    def buffer_updated(self, count: int) -> None:
        self.last_activity = self._loop.time()
        self.moved_bytes += count
        intake = self._intake
        is_part = intake.is_within_frame
        intake.filled(count)
        if is_part and not self._receiving.has_time_left(self):
            self._may_receive = False
        self._turns.now(self)
        if intake.may_have_frame:
            # It has no turn now, or may not take frames.
            intake.keep()
        if intake.may_have_frame or not self._may_receive:
            self._set_reading()

    def receive_on(self) -> None:
        self._may_receive = True
        self._set_reading()

    def eof_received(self) -> bool:
        self._note_closing("by the client")
        return False

    def pause_writing(self) -> None:
        if self._writable is not None:
            return  # Bytes and file ranges both press.
        self.stalled_since = self._loop.time()
        self._writable = self._loop.create_future()
        self._hold_back(True)
        self.count_unsent()
        self._set_reading()

    def resume_writing(self) -> None:
        self.count_unsent()
        self._wake_writers(None)
        self._turns.soon(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._note_closing(f"lost: {error}" if error else "by the client")
        self._lost = True
        logger.debug("%s %s closed: %s", self.protocol, self.peer, self._close_reason)
        self._connections.forget(self)
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except Exception:
                logger.exception("%s %s: closing the session failed", self.protocol, self.peer)
        self._wake_writers(ConnectionResetError("the client is gone"))
        self._sender.drop()
        self._release()
        if self._pipeline:
            self._connections.leave(self._pipeline)

    # Called by the session: penstock.session.Transport.

    @property
    def sends_files(self) -> bool:
        return True

    def write(self, parts: Buffers) -> None:
        self._answers.write_ready()  # They came first.
        self._queue(parts)

    def _queue(self, parts: Buffers) -> None:
        if self._lost:
            return
        # Small answers of one turn of the event loop share one system call.
        self._outgoing.extend(parts)
        is_large = False
        for part in parts:
            if type(part) is FileRange:
                is_large = True
            else:
                self._outgoing_bytes += len(part)
        if is_large or self._outgoing_bytes >= limits.WRITES_TOGETHER_BYTES:
            self._send()
        else:
            self._end_turn_soon()

    async def writable(self) -> None:
        """Raise ConnectionResetError when the client is gone, so that no loop pushes for ever."""
        if self._lost:
            raise ConnectionResetError("the client is gone")
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def close(self, reason: str) -> None:
        if self.closing_since is None:
            self._note_closing(reason)
            self._set_reading()
            # Later: the answer to the very request that closes is not handed over yet.
            self._loop.call_soon(self._close_when_settled)

    # Called by the pipeline: penstock.server.pipeline.Owner.

    def settled(self) -> None:
        self.last_activity = self._loop.time()
        if not self._answers:
            self._send()
        if self.closing_since is not None:
            self._close_when_settled()
        elif not self._reading:
            # Many requests end in one turn: reading on for each alone would be one frame at a time.
            self._turns.soon(self)

    def work_came(self) -> None:
        self._turns.soon(self)

    def failed(self, error: Exception) -> None:
        if isinstance(error, PeerError):
            self._refuse(error)
        else:
            self._break(error)

    # Called by the server.

    @property
    def in_flight(self) -> int:
        """Requests whose answers are still owed."""
        return len(self._answers)

    @property
    def held_bytes(self) -> int:
        """What this connection holds of the node's memory."""
        answers = self._answers
        answered = answers.waiting_bytes + self._unsent.held
        return self._intake.held_bytes + answers.request_bytes + answered

    @property
    def wants_memory(self) -> bool:
        """Whether it is not read before there is memory for more of it."""
        return self._wanted is not None

    def count_unsent(self) -> None:
        """Find out how much of the answers the client did not take yet."""
        if not self._lost:
            queued = self._transport.get_write_buffer_size() + self._sender.queued_memory
            unsent = self._unsent
            held, left = unsent.held, unsent.left
            unsent.look(queued)
            self._memory.answers.take(unsent.held - held)
            self.moved_bytes += left - unsent.left

    def abort(self, reason: str) -> None:
        """Cut the connection; what was not sent is dropped."""
        self._note_closing(reason)
        logger.info("%s %s cut: %s", self.protocol, self.peer, reason, extra=self._log_extra)
        self._transport.abort()

    # Called in its turns: penstock.server.turns.Worker.

    def take_turn(self, turn: Turn) -> bool:
        pipeline = self._pipeline
        if pipeline is None:
            return False
        intake = self._intake
        is_due, self._turn_end_is_due = self._turn_end_is_due, True
        try:
            if pipeline.go_on(turn) and intake.may_have_frame and self._may_take_frames():
                self._take_frames(pipeline, turn)
        except Exception as error:
            self.failed(error)
        self._turn_end_is_due = is_due
        goes_on = pipeline.has_work or (intake.may_have_frame and self._may_take_frames())
        if self._outgoing and (
            not goes_on or self._loop.time() - self._sent_at >= _COLLECTED_SECONDS
        ):
            self._send()
            # The client may have taken enough of it at once that more is welcome.
            goes_on = pipeline.has_work or (intake.may_have_frame and self._may_take_frames())
        self._set_reading()
        return goes_on

    # Frames in.

    def _may_take_frames(self) -> bool:
        return (
            self._intake.may_have_frame
            and self._session is not None
            and self.closing_since is None
            and not self._saturated()
        )

    def _take_frames(self, pipeline: Pipeline, turn: Turn) -> None:
        session = self._session
        assert session is not None
        self._intake.resume()
        if not self.served:
            self._refuse_strangers()
        intake, is_another = self._intake, False
        while (frame := intake.next_frame(session.frame_size)) is not None:
            is_another = True
            self._waited = 0.0
            pipeline.take(frame)
            if not self.served:
                self.served = True
                self._connections.heard(self)
            if not intake.may_have_frame or turn.is_over():
                break
            if self.closing_since is not None or self._saturated():
                break
        if not intake.may_have_frame:
            self._time_frame(is_another)
        self._intake.keep()

    def _time_frame(self, is_another: bool) -> None:
        unfinished = self._intake.unfinished_bytes
        self.frame_clock.received(unfinished, self.last_activity, is_another=is_another)

    def _end_turn_soon(self) -> None:
        if not self._turn_end_is_due:
            self._turn_end_is_due = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_end_is_due = False
        self._send()

    def _send(self) -> None:
        if self._outgoing and not self._lost:
            parts, self._outgoing = self._outgoing, []
            size, self._outgoing_bytes = self._outgoing_bytes, 0
            is_behind = self._transport.get_write_buffer_size() > 0
            self._sent_at = self._loop.time()
            self._sender.send(parts)
            # Whoever takes small answers as they come need not be counted.
            if is_behind or self._unsent.left or size >= limits.WRITES_TOGETHER_BYTES:
                self.moved_bytes += size
                self._unsent.add(size)
                self.count_unsent()

    def _refuse_strangers(self) -> None:
        name = recognise(self._intake.head(RECOGNISED_BYTES))
        if name is not None and name.lower() != self.protocol:
            raise StrangerError(misplaced(name, self.protocol, self._connections.ports))

    # Pressure.

    def _saturated(self) -> bool:
        return (
            self._writable is not None
            or self._answers.are_too_many
            or (self._memory.used >= self._memory.ample and self._waits_for_memory())
        )

    def _hold_back(self, held_back: bool) -> None:
        if self._pipeline is not None:
            self._pipeline.held_back = held_back

    def _waits_for_memory(self) -> bool:
        if self._wanted is None and not self._lost:
            held = self.held_bytes
            if self._memory.fits(1, held):
                return False
            self._wanted = self._memory.wait(1, held, self._has_memory, waited=self._waited)
        return True

    def _has_memory(self) -> None:
        assert self._wanted is not None, "nobody else ends the wait of a connection that is there"
        self._waited = self._loop.time() - self._wanted.since
        self._wanted = None
        self.progress.may_go_on()
        self._turns.soon(self)

    def _release(self) -> None:
        """Give back what is held for the client, but for the requests that run on."""
        self._intake.discard()
        self._answers.discard()
        self._memory.answers.take(-self._unsent.held)
        self._unsent = Unsent()
        self._outgoing.clear()
        if self._wanted is not None:
            self._memory.forget(self._wanted)

    def _set_reading(self) -> None:
        wanted = self._may_receive and not (
            self._intake.may_have_frame or self.closing_since is not None or self._saturated()
        )
        if wanted == self._reading or self._lost:
            return
        self._reading = wanted
        if wanted:
            self.frame_clock.resume(self._loop.time())
            self._transport.resume_reading()
        else:
            self.frame_clock.pause(self._loop.time())
            self._transport.pause_reading()

    def _wake_writers(self, error: Exception | None) -> None:
        self.stalled_since = None
        self._hold_back(False)
        writable, self._writable = self._writable, None
        if writable is None:
            return
        if error is None:
            writable.set_result(None)
        else:
            writable.set_exception(error)
            writable.exception()  # Nobody may be waiting, which is no failure.

    # The end.

    @property
    def _log_extra(self) -> dict[str, str]:
        return {"address": self.address}

    def put_off(self, seconds: float) -> None:
        """See penstock.server.connections.Connection."""
        self.last_activity += seconds
        self.frame_clock.put_off(seconds)
        if self.closing_since is not None:
            self.closing_since += seconds
        if self.stalled_since is not None:
            self.stalled_since += seconds

    def _note_closing(self, reason: str) -> None:
        if self.closing_since is None:
            self.closing_since = self._loop.time()
            self._close_reason = reason

    def _close_when_settled(self) -> None:
        if not self._answers and not self._lost:
            self._send()
            self._sender.close()

    def _refuse(self, error: PeerError) -> None:
        if self._lost:
            return
        reason, once = str(error), ""
        if isinstance(error, StrangerError):
            once = reason
        elif not self.served:
            once = unknown(self.protocol, self._connections.ports)
            reason = f"{reason}; {once}"
        extra = {**self._log_extra, ONCE_A_MINUTE: once}
        logger.warning("%s %s closed: %s", self.protocol, self.peer, reason, extra=extra)
        self.close(reason)

    def _break(self, error: Exception) -> None:
        if self._lost and isinstance(error, ConnectionResetError):
            return
        logger.error(
            "%s %s closed: a bug in the broker",
            self.protocol,
            self.peer,
            exc_info=error,
            extra=self._log_extra,
        )
        self.close("a bug in the broker")


def _written(address: tuple[str, int] | None) -> str:
    if not address:
        return "?"
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _network_address(address: tuple[str, int] | None) -> str:
    return network_address(address[0]) if address else "?"
