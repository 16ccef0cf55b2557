"""A Kafka client's connection and its calls, as handlers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.requests import call
from penstock.requests.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from penstock.broker.broker import Broker
    from penstock.kafka.fetch_session import FetchSession
    from penstock.session import Transport


class Client(call.Client):
    """The client at the other end of one connection.

    `produces` is where a Produce waits for a log to be opened or for a look at what it brings, and
    those behind it for their turn.
    No request begins before `throttled_until`, a time of the event loop.
    """

    def __init__(self, broker: Broker, transport: Transport) -> None:
        super().__init__(broker, transport)
        self.produces = Queue()
        self.is_gone = False
        self.throttled_until = 0.0
        self.fetch_session: FetchSession | None = None
        self._waits: set[Callable[[], object]] = set()

    def waiting(self, give_up: Callable[[], object]) -> AbstractContextManager[None]:
        """Have `give_up` called when the client goes while the request waits for something."""
        return _Waiting(self._waits, give_up)

    def end_fetch_session(self) -> None:
        """Forget what the client said that it reads, if it did (KIP-227)."""
        session, self.fetch_session = self.fetch_session, None
        if session is not None:
            session.close()

    def gone(self) -> None:
        """The connection is closed: nothing that waits for its sake needs to wait on."""
        self.is_gone = True
        self.fetch_session = None
        for give_up in tuple(self._waits):
            give_up()


class _Waiting:
    """A context manager by hand: most requests of a consumer enter one."""

    __slots__ = ("_give_up", "_waits")

    def __init__(self, waits: set[Callable[[], object]], give_up: Callable[[], object]) -> None:
        self._waits = waits
        self._give_up = give_up

    def __enter__(self) -> None:
        self._waits.add(self._give_up)

    def __exit__(self, *_: object) -> None:
        self._waits.discard(self._give_up)


class Call(call.Call[Client]):
    """One request's circumstances; the version is that of its API."""

    __slots__ = ("client_id",)

    client_id: str
    """What the client calls itself; empty where it does not."""
    is_large: ClassVar = False
    """Whether it has so many elements that it is carried out in steps, and nothing beside it."""
