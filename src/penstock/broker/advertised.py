"""The addresses under which a node is reached from elsewhere, by name, as Pulsar has them (PIP-61).

`outside:pulsar://broker.example.com:6650,outside:pulsar+ssl://broker.example.com:6651` is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTENER: Final = re.compile(
    r"([\w.-]+):(pulsar(?:\+ssl)?)://(\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})"
)
_PORT_MAX: Final = 65_535


class Advertised(NamedTuple):
    """Where clients that ask for one listener connect to, as URLs; `tls` is empty without TLS."""

    plain: str = ""
    tls: str = ""


def advertised_listeners(text: str) -> Mapping[str, Advertised]:
    """Read what an operator has set. Raises ValueError, which says what is needed."""
    found: dict[str, Advertised] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        match = _LISTENER.fullmatch(part)
        if match is None or not 0 < int(match[4]) <= _PORT_MAX:
            raise ValueError("NAME:pulsar://HOST:PORT, or several of them with commas between")
        name, scheme, host, port = match.groups()
        place = "tls" if scheme == "pulsar+ssl" else "plain"
        there = found.setdefault(name, Advertised())
        if getattr(there, place):
            raise ValueError(f"one address of {name} for each scheme")
        found[name] = there._replace(**{place: f"{scheme}://{host}:{port}"})
    return found
