"""Whether a client is still there: anything that it says is a sign of life."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock import limits
from penstock.deadlines import Deadlines
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandPing

if TYPE_CHECKING:
    from collections.abc import Callable


class KeepAlive:
    """Asks one client for signs of life, and gives it up when none comes."""

    def __init__(self, send: Callable[[BaseCommand], None], close: Callable[[str], None]) -> None:
        self._send = send
        self._close = close
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._awaited = "say CONNECT"
        self._ticking = self._deadlines.call_later(limits.PULSAR_KEEP_ALIVE_SECONDS, self._tick)

    def heard(self) -> None:
        """The client said something."""
        if not self._heard.done():
            self._heard.set_result(None)

    def stop(self) -> None:
        """The connection is gone."""
        self._ticking.cancel()
        self._heard.cancel()

    async def is_alive(self) -> bool:
        """Whether the client says anything within the time that it has of being asked.

        Means nothing after `stop`.
        """
        self._ping()
        heard = self._heard
        await asyncio.wait([heard], timeout=limits.PULSAR_LIVENESS_SECONDS)
        return heard.done()

    def _ping(self) -> None:
        if self._heard.done():
            self._heard = self._loop.create_future()
        self._awaited = "answer a PING"
        self._send(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))

    def _tick(self) -> None:
        if not self._heard.done():
            self._close(f"the client did not {self._awaited} in time")
            return
        self._ping()
        self._ticking = self._deadlines.call_later(limits.PULSAR_KEEP_ALIVE_SECONDS, self._tick)
