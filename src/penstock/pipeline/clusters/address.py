"""The option that says where the servers are, and those that say how they are reached.

An address is `host:port`, or several with commas, of Kafka's protocol, or begins with a scheme.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from penstock.clients.access import Access, Login, Password, Tls, Token
from penstock.pipeline.clusters.sasl_options import SECURITY, kafka_login, security_protocol
from penstock.pipeline.source.option_values import Given, OptionError

CA_FILE: Final = "tlsCaFile"
USER: Final = "user"
PASSWORD: Final = "password"  # noqa: S105  # the option's name
TOKEN: Final = "token"  # noqa: S105  # the option's name
NAMES: Final = (CA_FILE, USER, PASSWORD, TOKEN)


class Protocol(StrEnum):
    """What the servers speak."""

    KAFKA = "kafka"
    PULSAR = "pulsar"
    IGGY = "iggy"


_SCHEMES: Final = {
    "kafka": (Protocol.KAFKA, False),
    "kafka+ssl": (Protocol.KAFKA, True),
    "pulsar": (Protocol.PULSAR, False),
    "pulsar+ssl": (Protocol.PULSAR, True),
    "iggy": (Protocol.IGGY, False),
    "iggy+tls": (Protocol.IGGY, True),
}


@dataclass(frozen=True)
class Address:
    """Servers, and how they are reached."""

    protocol: Protocol
    servers: str
    """`host:port`, several with commas."""
    access: Access


def parse_address(given: Given, name: str, also: str) -> Address:
    """Return what the option `name` or `also` holds, and its access. Raises OptionError."""
    text = (given.get(name) or given.get(also) or "").strip()
    if not text:
        raise OptionError(f"option {name} is missing: the broker's Kafka address, host:port")
    scheme, separator, rest = text.rpartition("://")
    if separator and scheme.lower() not in _SCHEMES:
        known = ", ".join(f"{each}://" for each in _SCHEMES)
        raise OptionError(f"{name}: {scheme}:// is unknown; known are {known} and host:port alone")
    protocol, has_tls = _SCHEMES[scheme.lower() or "kafka"]
    for server in rest.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise OptionError(f"{name}: {server.strip()!r} is not of the form host:port")
    if protocol is not Protocol.KAFKA:
        _refuse_kafkas(given, f"{scheme}://", also)
    has_tls = security_protocol(given, has_tls=has_tls).endswith("SSL") or has_tls
    return Address(protocol, rest, Access(_tls(given, has_tls=has_tls), _login(given, protocol)))


def _refuse_kafkas(given: Given, scheme: str, also: str) -> None:
    kafkas = [name for name in given if name.startswith("kafka.") and name != also]
    if kafkas:
        raise OptionError(
            f"{kafkas[0]} is for Kafka's protocol, which {scheme} is not: leave it away"
        )


def _tls(given: Given, *, has_tls: bool) -> Tls | None:
    path = given.get(CA_FILE.lower(), "").strip()
    if not has_tls:
        if path:
            raise OptionError(
                f"{CA_FILE} is for TLS: begin the address with kafka+ssl://, pulsar+ssl:// or "
                f"iggy+tls://, or set {SECURITY} to SSL or SASL_SSL"
            )
        return None
    if not path:
        return Tls()
    try:
        # Tasks run where there may be no such file, so its text goes with them.
        tls = Tls(Path(path).read_text())
        tls.context()
    except OSError as error:  # ssl.SSLError among them
        what = "holds no certificates" if isinstance(error, ssl.SSLError) else "can't be read"
        raise OptionError(
            f"{CA_FILE} {path} {what}: name a file of certificates in PEM, or leave it away to "
            f"trust those of the operating system ({error})"
        ) from None
    except ValueError:
        raise OptionError(f"{CA_FILE} {path} is no text, so no certificates in PEM") from None
    return tls


def _login(given: Given, protocol: Protocol) -> Login | None:
    named = [name for name in (USER, PASSWORD, TOKEN) if name in given]
    if protocol is Protocol.KAFKA:
        if named:
            raise OptionError(
                f"{named[0]} is for pulsar:// and iggy://; Kafka's log-in is "
                "kafka.sasl.mechanism with kafka.sasl.jaas.config"
            )
        return kafka_login(given)
    if protocol is Protocol.PULSAR and named not in ([], [TOKEN]):
        raise OptionError(f"{named[0]} is for iggy://; to Pulsar one logs in with a {TOKEN}")
    if named not in ([], [TOKEN], [USER, PASSWORD]):
        raise OptionError(f"{', '.join(named)}: give {USER} and {PASSWORD}, or {TOKEN} alone")
    for name in named:
        if not given[name].strip():
            raise OptionError(f"{name} is empty")
    if TOKEN in named:
        return Token(given[TOKEN])
    return Password(given[USER], given[PASSWORD]) if named else None
