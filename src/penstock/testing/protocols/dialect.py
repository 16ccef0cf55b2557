"""What faults have to know of a protocol."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from penstock.session import Answer


class UnknownNameError(LookupError):
    """A fault names a request or an error that there is not."""


class Dialect(Protocol):
    """One protocol, for faults."""

    @property
    def requests(self) -> Mapping[str, str]:
        """The names of all requests that are served, by how `plain` writes them."""

    def error(self, request: str, name: str | int) -> int:
        """Return an error's number, for a request that is written as its protocol does.

        Raises UnknownNameError, and ValueError where that request has no answer that could fail.
        """

    def name(self, request: Any) -> str:
        """Return what a request is called, as the protocol writes it."""

    def topics(self, request: Any) -> set[str]:
        """Return the Kafka names of the topics that a request is about."""

    def fail(self, request: Any, error: int) -> Answer[Any]:
        """Return the reply that says so. Raises what the request's own `refuse` takes."""


def plain(name: str) -> str:
    """Write a name as all its spellings have in common."""
    return "".join(each for each in name.lower() if each.isalnum())


def by_plain_name(names: Iterable[str]) -> dict[str, str]:
    """Return names by how `plain` writes them."""
    return {plain(name): name for name in names}


def number(name: str | int, numbers: Mapping[str, int]) -> int:
    """Return an error's number, of a number or a name in any spelling. Raises UnknownNameError."""
    if isinstance(name, int):
        if name not in numbers.values():
            raise UnknownNameError(f"there is no error {name}")
        return name
    by_name = {plain(each): value for each, value in numbers.items()}
    found = by_name.get(plain(name))
    if found is None:
        raise UnknownNameError(f"there is no error {name!r}{near(name, numbers)}")
    return found


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint at what was meant, for the end of a sentence."""
    originals = by_plain_name(known)
    found = difflib.get_close_matches(plain(name), originals, n=1)
    return f"; did you mean {originals[found[0]]}?" if found else ""
