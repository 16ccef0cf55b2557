"""Records as tests write and read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Data: TypeAlias = bytes | str | None
"""Bytes, a text that stands for its UTF-8 bytes, or a null."""
Headers: TypeAlias = Mapping[str, Data] | Iterable[tuple[str, Data]]

_SHOWN_BYTES = 60


@dataclass(frozen=True, slots=True)
class Record:
    """A message of any protocol, as Kafka's clients see it; docs/interop.md has the rules.

    `timestamp_ms` counts from 1970. The key and the value are None where they are null. Headers
    that Penstock adds for what Kafka can't say are left out.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __str__(self) -> str:
        key = "" if self.key is None else f" key={_shown(self.key)}"
        headers = f" headers={dict(self.headers)}" if self.headers else ""
        return f"{self.partition}@{self.offset}{key} value={_shown(self.value)}{headers}"


def as_bytes(data: Data) -> bytes | None:
    """Return what is written for it."""
    return data.encode() if isinstance(data, str) else data


def header_list(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return names and values in their order."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, as_bytes(value)) for name, value in pairs]


def _shown(data: bytes | None) -> str:
    if data is None or len(data) <= _SHOWN_BYTES:
        return repr(data)
    return f"{data[:_SHOWN_BYTES]!r}... ({len(data)} bytes)"
