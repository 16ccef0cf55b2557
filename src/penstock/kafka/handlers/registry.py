"""Which APIs are served, in which versions, by which function.

Each handler module registers itself, so that ApiVersions tells what is really there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from penstock.kafka.wire import AnyApi, Api, Versions
from penstock.kafka.wire.apis import Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.broker import Broker
    from penstock.session import Transport


@dataclass(slots=True)
class Client:
    """The client at the other end of one connection."""

    broker: Broker
    transport: Transport
    waits: set[Callable[[], object]] = field(default_factory=set)
    is_gone: bool = False

    @contextmanager
    def waiting(self, give_up: Callable[[], object]) -> Iterator[None]:
        """Have `give_up` called when the client goes while the request waits for something."""
        self.waits.add(give_up)
        try:
            yield
        finally:
            self.waits.discard(give_up)

    def gone(self) -> None:
        """The connection is closed: nothing that waits for its sake needs to wait on."""
        self.is_gone = True
        for give_up in tuple(self.waits):
            give_up()


class Call(NamedTuple):
    """One request's circumstances: who asks, and in which version."""

    client: Client
    version: int
    client_id: str

    @property
    def broker(self) -> Broker:
        return self.client.broker


Handle: TypeAlias = Callable[[Request, Call], Response | Awaitable[Response | None] | None]


class Handler(NamedTuple):
    api: AnyApi
    versions: Versions
    handle: Handle[Any, Any]


HANDLERS: Final[dict[int, Handler]] = {}


def handles(
    api: Api[Request, Response], first: int, last: int
) -> Callable[[Handle[Request, Response]], Handle[Request, Response]]:
    """Register a function for an API in a range of versions, both ends in it."""

    def register(handle: Handle[Request, Response]) -> Handle[Request, Response]:
        assert api.key not in HANDLERS, f"{api.name} has two handlers"
        HANDLERS[api.key] = Handler(api, Versions(first, last), handle)
        return handle

    return register
