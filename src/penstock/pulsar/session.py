"""One connection of a Pulsar client: frames to commands, and their replies to frames."""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from penstock.pulsar.client import Call, Client
from penstock.pulsar.errors import refused
from penstock.pulsar.handlers import HANDLERS
from penstock.pulsar.producers import Producers
from penstock.pulsar.transient import TransientTopics
from penstock.pulsar.wire import frames
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand
from penstock.session import NO_LANES, PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.broker import Broker
    from penstock.pulsar.handlers.registry import Handler, Reply
    from penstock.session import Answer, Buffers, Transport

logger = logging.getLogger(__name__)

_LISTS: Final = frozenset({BaseCommand.ACK, BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES})
"""Commands that may be long lists of message ids."""
_ID_BYTES_A_BYTE: Final = 24
"""What a byte of such a list takes at most once it is parsed, and its ids are looked at."""
_CONNECT: Final = BaseCommand.CONNECT
"""Here, because protobuf looks its constants up each time, which takes longer than all else."""


class SessionState(Enum):
    """What a connection may say."""

    NEW = auto()
    CONNECTED = auto()
    CLOSED = auto()


class SessionEvent(Enum):
    """What happens to a connection."""

    CONNECT = auto()
    OTHER_COMMAND = auto()
    LOST = auto()


NEXT_STATE: Final = {
    (SessionState.NEW, SessionEvent.CONNECT): SessionState.CONNECTED,
    (SessionState.CONNECTED, SessionEvent.OTHER_COMMAND): SessionState.CONNECTED,
    (SessionState.NEW, SessionEvent.LOST): SessionState.CLOSED,
    (SessionState.CONNECTED, SessionEvent.LOST): SessionState.CLOSED,
}
"""Whatever is not here closes the connection."""


class PulsarRequest(Call):
    """Implements penstock.session.Request; it is its own call."""

    __slots__ = ("handler", "held_bytes", "message")
    lane = None

    def __init__(
        self, client: Client, handler: Handler, frame: frames.Frame, held_bytes: int
    ) -> None:
        self.held_bytes = held_bytes
        self.client = client
        self.version = client.protocol_version
        self.entry = frame.entry
        self.handler = handler
        self.message = getattr(frame.command, handler.field)

    def begin(self) -> Answer[Reply]:
        """Have the handler carry it out; see penstock.session."""
        return self.handler.handle(self.message, self)

    def encode(self, reply: Reply) -> Buffers | None:
        """Return the reply's frame; see penstock.session."""
        return None if reply is None else [frames.encode_command(reply)]

    def refuse(self, error: Exception) -> Buffers | None:
        """Return the refusal's frame; see penstock.session."""
        heard = refused(error)
        if heard is None:
            raise error
        handler = self.handler
        peer = self.client.transport.peer
        logger.debug("%s: %s refused: %s", peer, handler.field, error)
        if handler.refuse is None:
            return None
        return [frames.encode_command(handler.refuse(self.message, *heard))]


class PulsarSession:
    """Implements penstock.session.Session. Requests run side by side."""

    conflicts = NO_LANES

    def __init__(self, client: Client) -> None:
        self.client = client
        self._state = SessionState.NEW
        self._message_bytes = client.broker.settings.pulsar_message_bytes

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that begins with `head`; see penstock.session."""
        return frames.frame_size(head, self._message_bytes)

    def receive(self, frame: memoryview) -> PulsarRequest | None:
        """Take one frame; see penstock.session."""
        parsed = frames.parse_frame(frame)
        command = parsed.command
        kind = command.type
        client = self.client
        client.keep_alive.heard()
        handler = HANDLERS.get(kind)
        if kind == _CONNECT and not command.HasField("type"):
            handler = None  # A command of no type looks like this one.
        if kind == _CONNECT and handler is not None:
            self._advance(SessionEvent.CONNECT)
        elif self._state is not SessionState.CONNECTED:
            self._advance(SessionEvent.OTHER_COMMAND)
        if handler is None:
            logger.debug("%s sent a command that is not known", client.transport.peer)
            return None
        held_bytes = len(frame) * _ID_BYTES_A_BYTE if kind in _LISTS else 0
        return PulsarRequest(client, handler, parsed, held_bytes)

    def close(self) -> None:
        """Give up what the client had; see penstock.session."""
        self._advance(SessionEvent.LOST)
        self.client.gone()

    def _advance(self, event: SessionEvent) -> None:
        following = NEXT_STATE.get((self._state, event))
        if following is None:
            raise PeerError(
                "a Pulsar client says CONNECT first and once; this one is "
                f"{self._state.name.lower()} and sent {event.name.lower().replace('_', ' ')}"
            )
        self._state = following


def sessions(broker: Broker) -> Callable[[Transport], PulsarSession]:
    """Return what makes the session of each connection. Called once a broker."""
    producers, transient = Producers(broker), TransientTopics()
    return lambda transport: PulsarSession(Client(broker, transport, producers, transient))
