"""Names what a client speaks by its first bytes, for the log line about one at the wrong port.

Each description fits no first frame that a client of another protocol of ours sends: Kafka's and
Pulsar's sizes are big-endian and small, those of Iggy's older dialects little-endian and small, and
its newer one begins with zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

_KAFKA_FIRST_KEYS: Final = (3, 17, 18)
"""Metadata, SaslHandshake and ApiVersions: what Kafka clients open a connection with."""
_PULSAR_CONNECT: Final = b"\x08\x02"
"""A protobuf whose first field, the command's type, is CONNECT."""
_SMALL: Final = 1 << 16
"""Bytes that no first frame has."""
_IGGY_CODES: Final = range(1, 1024)
_POSTGRES_VERSIONS: Final = (3 << 16, 80877102, 80877103, 80877104)
"""StartupMessage, CancelRequest, SSLRequest and GSSENCRequest."""

RECOGNISED_BYTES: Final = 32
"""No more than this many first bytes of a connection are looked at."""


def recognise(head: bytes) -> str | None:
    """Return the name of the protocol that a connection begins with, where that is certain."""
    for name, speaks in _DESCRIPTIONS.items():
        if speaks(head):
            return name
    return None


def misplaced(name: str, protocol: str, ports: Mapping[str, int]) -> str:
    """Say what to do about a client that speaks `name` at the port of `protocol`."""
    here = protocol.capitalize()
    if name.lower() in ports:
        right = f"has port {ports[name.lower()]}; this one is {here}'s"
        return f"this looks like a client of {name}, which {right}"
    if name == "HTTP":
        return f"this is HTTP, and the port is not a web port: it is {here}'s"
    if name == "TLS":
        return f"this is TLS, and {here}'s port is a plain one: switch TLS off in the client"
    return f"this is {name}, which is not spoken here: the port is {here}'s"


def unknown(protocol: str, ports: Mapping[str, int]) -> str:
    """Say what to do about a client of which not even the first request could be read."""
    known = ", ".join(f"{each.capitalize()} {port}" for each, port in ports.items())
    return f"is it no client of {protocol.capitalize()}? The ports are: {known}"


def _is_pulsar(head: bytes) -> bool:
    # Total size, command size, command.
    size, command = int.from_bytes(head[:4]), int.from_bytes(head[4:8])
    return head[8:10] == _PULSAR_CONNECT and 0 < command <= size - 4 < _SMALL


def _is_kafka(head: bytes) -> bool:
    # Size, API key, version, correlation id.
    is_sized = len(head) >= 12 and 8 <= int.from_bytes(head[:4]) < _SMALL
    return is_sized and int.from_bytes(head[4:6]) in _KAFKA_FIRST_KEYS


def _is_iggy(head: bytes) -> bool:
    if len(head) >= 16 and not any(head[:16]):
        return True
    # Size and code of the older dialects.
    is_sized = 4 <= int.from_bytes(head[:4], "little") < _SMALL
    return is_sized and int.from_bytes(head[4:8], "little") in _IGGY_CODES


def _is_tls(head: bytes) -> bool:
    # A handshake record of version 3.x, and in it a ClientHello.
    return head[:2] == b"\x16\x03" and head[5:6] == b"\x01"


def _is_postgres(head: bytes) -> bool:
    size, version = int.from_bytes(head[:4]), int.from_bytes(head[4:8])
    if version == _POSTGRES_VERSIONS[0]:  # Kafka's Metadata but for the name that follows.
        return 8 < size < _SMALL and re.match(rb"[a-z_]{4,}\0", head[8:]) is not None
    return 8 <= size <= 16 and version in _POSTGRES_VERSIONS


def _begins(*patterns: bytes) -> Callable[[bytes], bool]:
    compiled = re.compile(b"|".join(patterns), re.DOTALL)
    return lambda head: compiled.match(head) is not None


_DESCRIPTIONS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "PostgreSQL": _is_postgres,
    "Pulsar": _is_pulsar,
    "Kafka": _is_kafka,
    "Iggy": _is_iggy,
    "TLS": _is_tls,
    "HTTP": _begins(rb"(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT) ", rb"PRI \* HTTP/2"),
    "Redis": _begins(rb"\*\d+\r\n\$", rb"(PING|INFO|HELLO|AUTH|COMMAND)\b.{0,24}\r\n"),
    "SSH": _begins(b"SSH-"),
    "AMQP": _begins(b"AMQP"),
    "MQTT": _begins(rb"\x10.{1,4}\x00\x04MQTT"),
    "the PROXY protocol": _begins(b"PROXY ", rb"\r\n\r\n\x00\r\nQUIT\n"),
}
"""In this order: PostgreSQL's first frame is one of Kafka's too, but for what follows."""
