"""Who asks: what a handler gets besides its request."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from penstock import limits
from penstock.memory import Holding

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.session import Transport


class PrincipalKind(Enum):
    """How the one who asks is known."""

    ANONYMOUS = auto()
    USER = auto()


class Principal(NamedTuple):
    """The one who asks. Every connection has exactly one at a time."""

    kind: PrincipalKind
    name: str = ""


ANONYMOUS: Final = Principal(PrincipalKind.ANONYMOUS)


class Client:
    """The client at the other end of one connection; each protocol adds what it keeps of it.

    `held` is what all takes that the client keeps open on the connection.
    """

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self.broker = broker
        self.transport = transport
        self.principal = ANONYMOUS
        self.held = Holding(broker.memory.clients)

    @property
    def address(self) -> str:
        """The address that what the client creates counts for."""
        return self.transport.address

    def has_room(self, size: int) -> bool:
        """Whether the client may keep something of so many bytes open besides what it has."""
        held = self.held.size
        return size <= max(
            limits.CONNECTION_LEAST_BYTES - held, self.broker.memory.clients.room(held)
        )


ClientT = TypeVar("ClientT", bound=Client)


class Call(Generic[ClientT]):
    """One request's circumstances. A protocol adds what its requests carry outside of themselves.

    `version` is the one that the request is made in: of its API, or of the whole protocol.
    """

    __slots__ = ("client", "version")

    def __init__(self, client: ClientT, version: int) -> None:
        self.client = client
        self.version = version

    @property
    def broker(self) -> Broker:
        return self.client.broker

    @property
    def principal(self) -> Principal:
        # The connection's, as it is when the handler runs: a log-in before this request counts.
        return self.client.principal
