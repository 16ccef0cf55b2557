"""Which APIs are served, in which versions, by which function.

Each handler module registers itself, so that ApiVersions tells what is really there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.kafka.client import Call
from penstock.kafka.wire import AnyApi, Api, Versions
from penstock.kafka.wire.apis import Request, Response
from penstock.requests.registry import Registry
from penstock.session import Answer

Handle: TypeAlias = Callable[[Request, Call], Answer[Response | None]]
"""The reply is a response's body; None for a request that is not answered."""


class Handler(NamedTuple):
    """One API, the versions of it that are served, and the function that answers it."""

    api: AnyApi
    versions: Versions
    handle: Handle[Any, Any]


HANDLERS: Final[Registry[int, Handler]] = Registry()


def handles(
    api: Api[Request, Response], first: int, last: int
) -> Callable[[Handle[Request, Response]], Handle[Request, Response]]:
    """Register a function for an API in a range of versions, both ends in it."""
    return HANDLERS.register(api.key, lambda handle: Handler(api, Versions(first, last), handle))
