"""A Kafka client's connection and its calls, as handlers see them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.requests import call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.broker.broker import Broker
    from penstock.session import Transport


class Client(call.Client):
    """The client at the other end of one connection."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        super().__init__(broker, transport)
        self.is_gone = False
        self._waits: set[Callable[[], object]] = set()

    @contextmanager
    def waiting(self, give_up: Callable[[], object]) -> Iterator[None]:
        """Have `give_up` called when the client goes while the request waits for something."""
        self._waits.add(give_up)
        try:
            yield
        finally:
            self._waits.discard(give_up)

    def gone(self) -> None:
        """The connection is closed: nothing that waits for its sake needs to wait on."""
        self.is_gone = True
        for give_up in tuple(self._waits):
            give_up()


class Call(call.Call[Client]):
    """One request's circumstances; the version is that of its API."""

    __slots__ = ("client_id",)

    def __init__(self, client: Client, version: int, client_id: str) -> None:
        self.client = client
        self.version = version
        self.client_id = client_id
