"""The ports that the broker listens on, one for each protocol."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from penstock.server.acceptor import Acceptor
from penstock.server.connection import Connection, SessionFactory

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.server.connections import Connections

logger = logging.getLogger(__name__)

_SESSIONS: Final = {
    "kafka": "penstock.kafka.session",
    "pulsar": "penstock.pulsar.session",
    "iggy": "penstock.iggy.session",
}
"""The modules whose `sessions` makes a factory of sessions for a broker."""
BACKLOG: Final = 1024
"""Connections that the operating system keeps until the broker takes them."""
PROTOCOLS: Final = tuple(_SESSIONS)


class ListenError(Exception):
    """A port can't be listened on. The message tells the operator what to do."""


@dataclass(frozen=True)
class Address:
    """Where one protocol is served. Port 0 asks the system for a free one."""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Listener:
    """An open port, at one or more addresses."""

    def __init__(self, address: Address, acceptors: list[Acceptor]) -> None:
        self.address = address
        self._acceptors = acceptors

    @property
    def is_exposed(self) -> bool:
        """Whether other machines may reach it."""
        return any(not each.is_loopback for each in self._acceptors)

    def close(self) -> None:
        """Take no more connections."""
        for acceptor in self._acceptors:
            acceptor.close()


async def listen(address: Address, sessions: SessionFactory, connections: Connections) -> Listener:
    """Open a port. Raises ListenError."""
    try:
        sockets = await _listening_sockets(address)
    except OSError as error:
        raise ListenError(_explain(address, error)) from error
    is_crowded = connections.turns.is_crowded
    acceptors = [
        Acceptor(each, lambda: Connection(address.protocol, sessions, connections), is_crowded)
        for each in sockets
    ]
    return Listener(Address(address.protocol, address.host, acceptors[0].port), acceptors)


async def _listening_sockets(address: Address) -> list[socket.socket]:
    """Return a socket for each address of the host."""
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, place in dict.fromkeys((each[0], each[4]) for each in found):
            listening = socket.create_server(place, family=family, backlog=BACKLOG)
            sockets.append(listening)
            listening.setblocking(False)
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


def session_factory(protocol: str, broker: Broker) -> SessionFactory:
    """Return what makes the session of each connection of a protocol."""
    # By name and late: start-up pays only for the protocols that are served.
    module = import_module(_SESSIONS[protocol])
    return cast("SessionFactory", module.sessions(broker))


def _explain(address: Address, error: OSError) -> str:
    what = f"{address.protocol} can't listen on {address}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{what}: another program has the port; stop it, "
            f"or choose a port with --{address.protocol}-port"
        )
    if error.errno == errno.EACCES:
        return f"{what}: ports below 1024 need a right that this user lacks; choose a higher one"
    return (
        f"{what}: {error.strerror or error}; --host takes an address or a name of this machine, "
        "and an IPv6 address without brackets"
    )
