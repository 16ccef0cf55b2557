"""Which APIs are served, in which versions, by which function.

Each handler module registers itself, so that ApiVersions tells what is really there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.kafka.wire import Api, Struct, Versions, api

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


Answer: TypeAlias = Struct | None
Handle: TypeAlias = Callable[[Struct, Call], Answer | Awaitable[Answer]]


class Handler(NamedTuple):
    api: Api
    versions: Versions
    handle: Handle


HANDLERS: Final[dict[int, Handler]] = {}


def handles(name: str, first: int, last: int) -> Callable[[Handle], Handle]:
    """Register a function for an API in a range of versions, both ends in it."""

    def register(handle: Handle) -> Handle:
        known = api(name)
        assert known.key not in HANDLERS, f"{name} has two handlers"
        HANDLERS[known.key] = Handler(known, Versions(first, last), handle)
        return handle

    return register
