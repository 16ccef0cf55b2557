"""What all connections share: their buffer, their number, their deadlines and their end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from penstock import limits
from penstock.allocator import FreedMemory
from penstock.deadlines import unheard_seconds
from penstock.memory import Memory
from penstock.pace import Pace
from penstock.server.frame_clock import FrameClock
from penstock.server.pipeline import Pipeline
from penstock.server.progress import Holder, StuckHolders
from penstock.server.receiving import Receiving
from penstock.server.turns import Newcomers, Turns

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
"""How often deadlines are looked at: one pass over all connections instead of a timer for each."""


class Connection(Holder, Protocol):
    """One connection, as far as its deadlines and its end are concerned; times are the loop's."""

    address: str
    """The network address of the client, without a port."""
    frame_clock: FrameClock
    last_activity: float
    closing_since: float | None
    stalled_since: float | None

    @property
    def in_flight(self) -> int:
        """Requests whose answers are still owed."""

    def put_off(self, seconds: float) -> None:
        """Have its deadlines come so much later."""

    def close(self, reason: str) -> None:
        """Close after what is owed was answered."""

    def abort(self, reason: str) -> None:
        """Cut the connection; what was not sent is dropped."""


class Connections:
    """The open connections of one server."""

    def __init__(
        self,
        advertised_host: str,
        memory: Memory,
        connections_max: int = limits.CONNECTIONS,
        address_connections_max: int = limits.CONNECTIONS,
    ) -> None:
        self.advertised_host = advertised_host
        self.ports: dict[str, int] = {}
        """By the names of the protocols that are served."""
        self.memory = memory
        self.receive_buffer = memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES))
        self.turns = Turns()
        self.receiving = Receiving()
        self.newcomers = Newcomers()
        self._connections_max = connections_max
        self._address_connections_max = address_connections_max
        self._open: set[Connection] = set()
        self._freed = FreedMemory(memory)
        self._stuck = StuckHolders(self._open)
        memory.set_reclaimer(self._stuck)
        self._of_address: Counter[str] = Counter()
        self._silent: dict[str, dict[Connection, None]] = {}
        """Of each address, those that asked nothing yet, in the order in which they came."""
        self._left: list[tuple[float, Pipeline]] = []
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> str | None:
        """Count a new connection, or say why it is refused.

        Where its address has no more room, it has the place of the one that has been there longest
        without a word: else who connects and says nothing keeps all others of its address out.
        """
        address = connection.address
        full = f"{address} has as many connections as one address may have"
        is_full = self._of_address[address] >= self._address_connections_max
        if is_full and (silent := next(iter(self._silent.get(address, ())), None)) is not None:
            silent.abort(f"{full}, and this one asked nothing")
            self.forget(silent)
            is_full = False
        if len(self._open) >= self._connections_max:
            return "the broker has as many connections as it may have"
        if is_full:
            return full
        self._open.add(connection)
        self._silent.setdefault(address, {})[connection] = None
        self._of_address[connection.address] += 1
        self._empty.clear()
        return None

    def heard(self, connection: Connection) -> None:
        """It asked something."""
        silent = self._silent.get(connection.address, {})
        silent.pop(connection, None)
        if not silent:
            self._silent.pop(connection.address, None)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        if connection not in self._open:
            return
        self.heard(connection)
        self._open.remove(connection)
        self._of_address[connection.address] -= 1
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]
        if not self._open:
            self._empty.set()

    def leave(self, pipeline: Pipeline) -> None:
        """Take over requests that outlived their connection; they are cancelled in a while."""
        self._left.append((asyncio.get_running_loop().time(), pipeline))

    async def sweep_for_ever(self) -> None:
        """Cut connections that are past a deadline, for as long as the server runs."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SWEEP_SECONDS
            await asyncio.sleep(SWEEP_SECONDS)
            unheard = unheard_seconds(due, loop.time())
            if unheard:
                await Pace().through(self.put_off_in_steps(unheard))
            await Pace().through(self.sweep_in_steps(loop.time()))

    def put_off_in_steps(self, seconds: float) -> Iterator[None]:
        """Have all deadlines come later by the time in which nobody was heard."""
        for connection in tuple(self._open):
            connection.put_off(seconds)
            yield

    def sweep(self, now: float) -> None:
        """Cut every connection that is past a deadline at the time `now` of the event loop."""
        for _ in self.sweep_in_steps(now):
            pass

    def sweep_in_steps(self, now: float) -> Iterator[None]:
        """As `sweep`, with others' turns between two connections."""
        is_ample = self.memory.used < self.memory.ample
        for connection in tuple(self._open):
            if connection in self._open:
                if not is_ample:
                    self._stuck.look(connection, now)
                reason = _overdue(connection, now)
                if reason is not None:
                    connection.abort(reason)
            yield
        if not is_ample:
            self._stuck.looked()
        self._freed.look()
        for since, pipeline in tuple(self._left):
            if now - since > limits.CLOSING_SECONDS:
                pipeline.cancel()
                yield
        self._left = [(since, pipeline) for since, pipeline in self._left if pipeline]

    async def finish(self, seconds: float) -> bool:
        """Let every connection answer what it was asked and close. False when time ran out."""
        for connection in tuple(self._open):
            connection.close("the broker stops")
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    async def cut(self) -> None:
        """Cut what is left, and cancel the requests that outlived their connections."""
        for connection in tuple(self._open):
            connection.abort("the broker stops and a request was still in flight")
        await self._empty.wait()
        for _, pipeline in self._left:
            pipeline.cancel()
            await pipeline.ended()
        self._left.clear()


def _overdue(connection: Connection, now: float) -> str | None:
    if connection.closing_since is not None:
        overdue = now - connection.closing_since > limits.CLOSING_SECONDS
        return "it did not take its last answers" if overdue else None
    if connection.stalled_since is not None:
        overdue = now - connection.stalled_since > limits.WRITE_STALL_SECONDS
        return "it does not read its answers" if overdue else None
    if connection.frame_clock.is_over(now):
        return "its request did not arrive whole in time"
    silent = now - connection.last_activity
    if connection.in_flight == 0 and silent > limits.IDLE_SECONDS:
        return f"nothing was asked for {limits.IDLE_SECONDS} seconds"
    return None
