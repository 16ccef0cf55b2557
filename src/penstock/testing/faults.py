"""Requests that fail, come late or lose their connection, because a test asks for it.

One mechanism for all protocols: between the server and each protocol's session stands one that
looks at every request before it begins. A broker that is not started by a test has none of this.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from enum import Enum, auto
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.server.connection import Connection
from penstock.server.listeners import session_factory
from penstock.session import Deferred
from penstock.testing.protocols.dialect import UnknownNameError, near, plain
from penstock.testing.protocols.iggy import IggyDialect
from penstock.testing.protocols.kafka import KafkaDialect
from penstock.testing.protocols.pulsar import PulsarDialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.broker.broker import Broker
    from penstock.server.connection import SessionFactory
    from penstock.session import Answer, Buffers, Conflicts, Encoded, Request, Session, Transport
    from penstock.testing.protocols.dialect import Dialect

DIALECTS: Final[Mapping[str, Dialect]] = {
    "kafka": KafkaDialect(),
    "pulsar": PulsarDialect(),
    "iggy": IggyDialect(),
}


class Effect(Enum):
    """What happens to a request."""

    FAIL = auto()
    """It is not carried out, and answered with an error."""
    DELAY = auto()
    """It is carried out later, and all that its connection asks after it later still."""
    DISCONNECT = auto()
    """It is not carried out, and its connection is cut."""
    LOSE_ANSWER = auto()
    """It is carried out, and its connection is cut instead of the answer."""


@dataclass(eq=False)
class Fault:
    """What a test asked for. `left` is how often it is still to happen, `hits` how often it did."""

    effect: Effect
    requests: Mapping[str, str]
    """The name of the request in each protocol that it is for."""
    left: int
    topic: str | None = None
    error: int = 0
    seconds: float = 0.0
    hits: int = 0


class Faults:
    """The faults of one broker. Tests set them in their thread, and requests meet them in its."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Fault] = []
        self._connections: set[Connection] = set()

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, fault: Fault) -> Fault:
        """Have a fault happen, after those that were asked for before."""
        with self._lock:
            self._pending.append(fault)
        return fault

    def clear(self) -> None:
        """Have none happen any more."""
        with self._lock:
            for fault in self._pending:
                fault.left = 0
            self._pending.clear()

    def take(self, protocol: str, request: Any) -> Fault | None:
        """Return the fault that a request meets."""
        dialect = DIALECTS[protocol]
        name = dialect.name(request)
        with self._lock:
            for fault in self._pending:
                if fault.requests.get(protocol) == name and (
                    fault.topic is None or fault.topic in dialect.topics(request)
                ):
                    fault.left -= 1
                    fault.hits += 1
                    if not fault.left:
                        self._pending.remove(fault)
                    return fault
        return None

    def sessions(self, protocol: str, broker: Broker) -> SessionFactory:
        """Return what makes the session of each connection: the protocol's own, behind faults."""
        factory = session_factory(protocol, broker)

        def make(transport: Transport) -> Session:
            connection = cast("Connection", transport)
            self._connections.add(connection)
            return _FaultySession(protocol, factory(transport), connection, self)

        return make

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        self._connections.discard(connection)

    async def disconnect(self) -> int:
        """Cut all connections of now, and return how many there were."""
        connections = tuple(self._connections)
        for connection in connections:
            connection.abort(_REASON)
        return len(connections)


_REASON: Final = "a test asked for it"
_NO_ANSWER: Final = object()


class _FaultySession:
    """A `penstock.session.Session` in front of a protocol's own."""

    def __init__(
        self, protocol: str, session: Session, connection: Connection, faults: Faults
    ) -> None:
        self.protocol = protocol
        self.connection = connection
        self.faults = faults
        self.order = asyncio.Lock()
        """Held from when a request is delayed until it has begun."""
        self._session = session
        self.frame_size = session.frame_size

    @property
    def conflicts(self) -> Conflicts:
        return self._session.conflicts

    def receive(self, frame: memoryview) -> Request[Any] | None:
        request = self._session.receive(frame)
        if request is None or not (self.faults or self.order.locked()):
            return request
        return _FaultyRequest(request, self)

    def close(self) -> None:
        self.faults.forget(self.connection)
        self._session.close()


class _FaultyRequest:
    """A `penstock.session.Request` that may meet a fault when it begins."""

    def __init__(self, request: Request[Any], session: _FaultySession) -> None:
        self._request = request
        self._session = session
        self.lane = request.lane
        self.held_bytes = request.held_bytes

    def begin(self) -> Answer[Any]:
        session = self._session
        fault = session.faults.take(session.protocol, self._request)
        effect = fault.effect if fault else None
        if effect is Effect.DISCONNECT:
            session.connection.abort(_REASON)
            return _NO_ANSWER
        if effect is Effect.DELAY or session.order.locked():
            return self._begin_later(fault)
        return self._begin(fault)

    def encode(self, reply: Any) -> Encoded:
        return None if reply is _NO_ANSWER else self._request.encode(reply)

    def refuse(self, error: Exception) -> Buffers | None:
        return self._request.refuse(error)

    def _begin(self, fault: Fault | None) -> Answer[Any]:
        if fault is not None and fault.effect is Effect.FAIL:
            return DIALECTS[self._session.protocol].fail(self._request, fault.error)
        if fault is not None and fault.effect is Effect.LOSE_ANSWER:
            return self._begin_and_lose()
        return self._request.begin()

    async def _begin_later(self, fault: Fault | None) -> Any:
        async with self._session.order:
            if fault is not None:
                await asyncio.sleep(fault.seconds)
            answer = self._begin(fault)
        return await _ended(answer)

    async def _begin_and_lose(self) -> Any:
        await _ended(self._request.begin())
        self._session.connection.abort(_REASON)
        return _NO_ANSWER


async def _ended(answer: Answer[Any]) -> Any:
    return await answer if isinstance(answer, Deferred | CoroutineType) else answer


def requests_named(name: str, protocol: str | None) -> dict[str, str]:
    """Return the request of this name in each protocol that has one. Raises UnknownNameError."""
    dialects = dialects_of(protocol)
    found = {
        each: dialect.requests[plain(name)]
        for each, dialect in dialects.items()
        if plain(name) in dialect.requests
    }
    if not found:
        known = [each for dialect in dialects.values() for each in dialect.requests.values()]
        whose = protocol or "any protocol's"
        raise UnknownNameError(f"{name!r} is no request of {whose}{near(name, known)}")
    return found


def dialects_of(protocol: str | None) -> Mapping[str, Dialect]:
    """Return one protocol, or all. Raises UnknownNameError."""
    if protocol is None:
        return DIALECTS
    if protocol not in DIALECTS:
        raise UnknownNameError(f"{protocol!r} is no protocol; they are {', '.join(DIALECTS)}")
    return {protocol: DIALECTS[protocol]}


def failure(request: str, error: str | int, protocol: str | None) -> tuple[dict[str, str], int]:
    """Return the one protocol's request and the error's number in it.

    Raises UnknownNameError, and ValueError where it could be more than one protocol's.
    """
    found: dict[str, tuple[str, int]] = {}
    unknown: UnknownNameError | None = None
    for each, name in requests_named(request, protocol).items():
        try:
            found[each] = (name, DIALECTS[each].error(name, error))
        except UnknownNameError as problem:
            unknown = problem
    if not found:
        assert unknown is not None
        raise unknown
    if len(found) > 1:
        raise ValueError(f"{request} and {error} are known to {', '.join(found)}: say protocol=")
    ((name_of, (name, number)),) = found.items()
    return {name_of: name}, number
