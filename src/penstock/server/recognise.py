"""Names the protocol that a client spoke on a port of another one, for the operator's log line."""

from __future__ import annotations

from typing import Final

_HTTP_METHODS: Final = (
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"PRI * HTTP/2",
)
_TLS_HANDSHAKE: Final = 0x16
_TLS_CLIENT_HELLO: Final = 0x01
_KAFKA_FIRST_KEYS: Final = (3, 17, 18)
"""Metadata, SaslHandshake and ApiVersions: what Kafka clients open a connection with."""

RECOGNISED_BYTES: Final = 16
"""No more than this many first bytes of a connection are looked at."""


def never_ours(head: bytes) -> str | None:
    """Tell what `head` is when no protocol of ours can begin so, else None."""
    if head.startswith(_HTTP_METHODS):
        return "this is HTTP, and the port is not a web port"
    if (
        len(head) > 5
        and head[0] == _TLS_HANDSHAKE
        and head[1] == 3
        and head[5] == _TLS_CLIENT_HELLO
    ):
        return "this is TLS, and the port is a plain one: switch TLS off in the client"
    return None


def other_protocol(head: bytes, spoken_here: str) -> str | None:
    """Tell whose protocol `head` begins with when it is another one of ours, else None."""
    name = _protocol_of(head)
    if name is None or name.lower() == spoken_here:
        return None
    return f"this looks like a client of {name}, which has its own port"


def _protocol_of(head: bytes) -> str | None:
    if len(head) < 10:
        return None
    size = int.from_bytes(head[:4])
    # Pulsar: total size, command size, then a protobuf whose first field is CONNECT's type.
    if int.from_bytes(head[4:8]) in range(1, size - 3) and head[8:10] == b"\x08\x02":
        return "Pulsar"
    if 8 <= size < 1 << 16 and int.from_bytes(head[4:6]) in _KAFKA_FIRST_KEYS:
        return "Kafka"
    if len(head) >= 16 and not any(head[:16]):
        return "Iggy"
    return None
