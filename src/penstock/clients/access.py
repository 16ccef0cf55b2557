"""How a server is reached: over TLS or not, and as whom. No text made of it has a secret in it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Tls:
    """A server that shows a certificate for its host's name, which one of these vouches for."""

    authorities: str | None = None
    """Certificates in PEM; None for those that the operating system trusts."""

    def context(self) -> ssl.SSLContext:
        """Return what a connection needs; raises ssl.SSLError where there is no certificate."""
        return ssl.create_default_context(cadata=self.authorities)


@dataclass(frozen=True)
class Password:
    """A user's. `mechanism` is one of Kafka's SASL mechanisms, and means nothing elsewhere."""

    user: str
    password: str = field(repr=False)
    mechanism: str = "PLAIN"


@dataclass(frozen=True)
class Token:
    """What a server once gave out to somebody, who shows it instead of a password."""

    token: str = field(repr=False)


class LoginError(Exception):
    """A server does not know the user, or can't be shown who that is; the message says which."""


Login: TypeAlias = Password | Token


@dataclass(frozen=True)
class Access:
    """Without TLS and without a log-in where nothing else is said."""

    tls: Tls | None = None
    login: Login | None = None


OPEN = Access()


def connect(servers: str, timeout_s: float, tls: Tls | None) -> socket.socket:
    """Connect to the first server that answers, of `host:port` with commas. Raises OSError."""
    failure: OSError | None = None
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        host = host.strip("[]")
        try:
            connection = socket.create_connection((host, int(port)), timeout_s)
        except ValueError:
            raise ConnectionError(f"{server!r}: write host:port") from None
        except OSError as error:
            failure = error
            continue
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection if tls is None else _secured(connection, host, tls)
        except OSError as error:
            connection.close()
            failure = error
    raise ConnectionError(f"no broker answers at {servers}: {failure}") from failure


def _secured(connection: socket.socket, host: str, tls: Tls) -> socket.socket:
    try:
        return tls.context().wrap_socket(connection, server_hostname=host)
    except (ssl.SSLError, ConnectionError) as error:
        raise ConnectionError(f"no TLS with {host}: {error}") from error


def read_exactly(connection: socket.socket, size: int) -> bytearray:
    """Return so many bytes; raises OSError where there are no more."""
    buffer = bytearray(size)
    read_into(connection, memoryview(buffer))
    return buffer


def read_into(connection: socket.socket, view: memoryview) -> None:
    """Fill a buffer; raises OSError where the server closes the connection before."""
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionError("the broker closed the connection")
        view = view[count:]
