"""The ports that the broker listens on, one for each protocol."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

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


@dataclass(frozen=True)
class Listener:
    """An open port."""

    address: Address
    server: asyncio.Server


async def listen(address: Address, broker: Broker, connections: Connections) -> Listener:
    """Open a port. Raises ListenError."""
    factory = _session_factory(address.protocol, broker)
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(address.protocol, factory, connections),
            address.host,
            address.port,
            backlog=1024,
        )
    except OSError as error:
        raise ListenError(_explain(address, error)) from error
    port = server.sockets[0].getsockname()[1]
    return Listener(Address(address.protocol, address.host, port), server)


def _session_factory(protocol: str, broker: Broker) -> SessionFactory:
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
    return f"{what}: {error.strerror or error}"
