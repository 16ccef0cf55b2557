"""Which APIs are served, in which versions, by which function.

Each handler module registers itself, so that ApiVersions tells what is really there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from penstock.kafka.client import Call
from penstock.kafka.wire import Api, Struct, Versions, api
from penstock.requests.registry import Registry
from penstock.session import Answer

Reply: TypeAlias = Struct | None
"""A response's body; None for a request that is not answered."""
Handle: TypeAlias = Callable[[Struct, Call], Answer[Reply]]


class Handler(NamedTuple):
    """One API, the versions of it that are served, and the function that answers it."""

    api: Api
    versions: Versions
    handle: Handle


HANDLERS: Final[Registry[int, Handler]] = Registry()


def handles(name: str, first: int, last: int) -> Callable[[Handle], Handle]:
    """Register a function for an API in a range of versions, both ends in it."""
    known = api(name)
    return HANDLERS.register(
        known.key, lambda handle: Handler(known, Versions(first, last), handle)
    )
