"""Takes new connections from a listening socket, a few in each turn of the event loop.

The loops' own servers take all that wait at once: a flood of connections would have every file
that the process may open before the first of them is refused. Nor are they taken for longer than
what they send is looked at: those who are there would wait behind ever more newcomers. To take one
is a tenth of what a connection costs that says something and goes. So only a few are under way
at a time, and fewer while many wait for their turns; the rest waits in the operating system's line.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Final

from penstock import limits
from penstock.tasks import Tasks

logger = logging.getLogger(__name__)

ACCEPTED_TOGETHER: Final = 8
"""Connections that are taken and not made yet."""
ACCEPTED_INTO_A_CROWD: Final = 2
"""The same while many wait for their turns."""
_SHARE_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
RETRY_SECONDS: Final = 1.0
"""How long no connection is taken after the operating system had no file left for one."""


class Acceptor:
    """One listening socket, which does not block; `factory` makes the protocol of a connection."""

    def __init__(
        self,
        listening: socket.socket,
        factory: Callable[[], asyncio.BaseProtocol],
        is_crowded: Callable[[], bool],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._factory = factory
        self._is_crowded = is_crowded
        self._tasks = Tasks()
        self._retry: asyncio.TimerHandle | None = None
        self._begin()

    @property
    def port(self) -> int:
        """The real one."""
        return int(self._listening.getsockname()[1])

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        host = self._listening.getsockname()[0].partition("%")[0]
        return ipaddress.ip_address(host).is_loopback

    def close(self) -> None:
        """Take no more connections."""
        if self._retry is not None:
            self._retry.cancel()
        else:
            self._loop.remove_reader(self._listening)
        self._listening.close()

    def _begin(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        until = perf_counter() + _SHARE_SECONDS
        together = ACCEPTED_INTO_A_CROWD if self._is_crowded() else ACCEPTED_TOGETHER
        while len(self._tasks) < together:
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._tasks.start(self._connect(connection), "a new connection")
            if perf_counter() >= until:
                return

    async def _connect(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._factory, connection)
        except OSError as error:
            logger.debug("a new connection ended at once: %s", error)
            connection.close()

    def _pause(self, error: OSError) -> None:
        # The socket stays readable, so that trying on would take all of the processor.
        logger.error("no connections are taken for %s s: %s", RETRY_SECONDS, error)
        self._loop.remove_reader(self._listening)
        self._retry = self._loop.call_later(RETRY_SECONDS, self._begin)
