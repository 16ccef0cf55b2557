"""One connection of a Pulsar client: frames to commands, and their answers to frames."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from penstock import limits
from penstock.pulsar.errors import ANSWERED, error_code
from penstock.pulsar.handlers.registry import HANDLERS
from penstock.pulsar.node import Node
from penstock.pulsar.wire import frames
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandPing,
)
from penstock.session import Deferred, PeerError

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.pulsar.consumer import PulsarConsumer
    from penstock.pulsar.handlers.registry import Handler
    from penstock.pulsar.producers import Producer
    from penstock.pulsar.wire.pulsar_api_pb2 import CommandProducer, CommandSubscribe
    from penstock.session import Buffers, Transport

KEEP_ALIVE_SECONDS: Final = 30.0
LIVENESS_SECONDS: Final = 5.0
"""How long a client may take to answer when somebody else wants its place."""

NO_REQUEST: Final = (1 << 64) - 1
"""The request id of what the broker says unasked."""

CLOSED_REMEMBERED: Final = 1_024
"""Closed producers whose late messages are dropped in silence instead of closing the connection."""

logger = logging.getLogger(__name__)


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


class PulsarSession:
    """Implements penstock.session.Session."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self.broker = broker
        self.transport = transport
        self.node = Node.of(broker)
        self.state = SessionState.NEW
        self.protocol_version = 0
        self.client_version = ""
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, PulsarConsumer] = {}
        self.opening_producers: dict[int, CommandProducer] = {}
        self.opening_consumers: dict[int, CommandSubscribe] = {}
        self.closed_producers: deque[int] = deque(maxlen=CLOSED_REMEMBERED)
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._ticking = self._loop.call_later(KEEP_ALIVE_SECONDS, self._tick)

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that begins with `head`; see penstock.session."""
        return frames.frame_size(head, limits.PULSAR_MESSAGE_BYTES)

    def receive(self, frame: memoryview) -> Awaitable[Buffers | None] | Buffers | None:
        """Answer one frame; see penstock.session."""
        command, entry = frames.parse_frame(frame)
        if not self._heard.done():
            self._heard.set_result(None)
        handler = HANDLERS.get(command.type) if command.HasField("type") else None
        is_connect = handler is not None and command.type == BaseCommand.CONNECT
        self._advance(SessionEvent.CONNECT if is_connect else SessionEvent.OTHER_COMMAND)
        if handler is None:
            logger.debug("%s sent a command that is not known", self.transport.peer)
            return None
        return self._carry_out(handler, command, entry)

    def close(self) -> None:
        """Give up what the client had; see penstock.session."""
        self._advance(SessionEvent.LOST)
        self._ticking.cancel()
        self._heard.cancel()
        for producer in tuple(self.producers.values()):
            self.node.remove_producer(producer)
        for consumer in tuple(self.consumers.values()):
            self.broker.subscriptions.leave(consumer.subscription, consumer.member)
        self.producers.clear()
        self.consumers.clear()

    def send(self, command: BaseCommand) -> None:
        """Tell the client something that it did not ask for."""
        self.transport.write([frames.encode_command(command)])

    def drop_producer(self, producer: Producer) -> None:
        """A producer is out: its client creates it again if it wants to."""
        if self.producers.pop(producer.id, None) is None:
            return
        self.closed_producers.append(producer.id)
        close = CommandCloseProducer(producer_id=producer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=close))

    def drop_consumer(self, consumer: PulsarConsumer) -> None:
        """A consumer was detached: its client subscribes again if it wants to."""
        if self.consumers.get(consumer.id) is not consumer:
            return
        del self.consumers[consumer.id]
        close = CommandCloseConsumer(consumer_id=consumer.id, request_id=NO_REQUEST)
        self.send(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=close))

    async def is_alive(self) -> bool:
        """Whether the client says anything within `LIVENESS_SECONDS` of being asked."""
        if self.closed:
            return False
        self._ping()
        heard = self._heard
        await asyncio.wait([heard], timeout=LIVENESS_SECONDS)
        return not self.closed and heard.done()

    @property
    def closed(self) -> bool:
        """Whether the connection is gone: what was asked on it is nobody's wish any more."""
        return self.state is SessionState.CLOSED

    def _carry_out(
        self, handler: Handler, command: BaseCommand, entry: memoryview
    ) -> Awaitable[Buffers | None] | Buffers | None:
        request = getattr(command, handler.field)
        try:
            answer = handler.handle(self, request, entry)
        except ANSWERED as error:
            return self._refuse(handler, request, error)
        if answer is None:
            return None
        if isinstance(answer, Deferred):
            return Deferred(answer.ready, lambda _: self._finish(handler, request, answer))
        if isinstance(answer, Awaitable):
            return self._wait_for(handler, request, answer)
        return [frames.encode_command(answer)]

    async def _wait_for(
        self, handler: Handler, request: Any, answer: Awaitable[BaseCommand | None]
    ) -> Buffers | None:
        try:
            command = await answer
        except ANSWERED as error:
            return self._refuse(handler, request, error)
        return None if command is None else [frames.encode_command(command)]

    def _finish(
        self, handler: Handler, request: Any, answer: Deferred[BaseCommand]
    ) -> Buffers | None:
        try:
            return [frames.encode_command(answer.result())]
        except ANSWERED as error:
            return self._refuse(handler, request, error)

    def _refuse(self, handler: Handler, request: Any, error: Exception) -> Buffers | None:
        logger.debug("%s: %s refused: %s", self.transport.peer, handler.field, error)
        if handler.refuse is None:
            return None
        refusal = handler.refuse(request, error_code(error), str(error))
        return [frames.encode_command(refusal)]

    def _advance(self, event: SessionEvent) -> None:
        following = NEXT_STATE.get((self.state, event))
        if following is None:
            raise PeerError(
                "a Pulsar client says CONNECT first and once; this one is "
                f"{self.state.name.lower()} and sent {event.name.lower().replace('_', ' ')}"
            )
        self.state = following

    def _ping(self) -> None:
        """Ask for a sign of life; whatever the client says next is one."""
        if self._heard.done():
            self._heard = self._loop.create_future()
        self.send(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))

    def _tick(self) -> None:
        if self.state is SessionState.NEW:
            self.transport.close("the client did not say CONNECT in time")
            return
        if not self._heard.done():
            self.transport.close("the client did not answer a PING in time")
            return
        self._ping()
        self._ticking = self._loop.call_later(KEEP_ALIVE_SECONDS, self._tick)
