"""One connection of an Iggy client: frames to commands, and replies to frames.

Three dialects arrive on the same port. A connection's first bytes choose the codec of its own, and
nothing here or in a handler asks again which one it is.

Requests are carried out one after another, but for sends: what a client sends without waiting is
written in its order, and shares flushes.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from penstock.iggy.errors import as_iggy_error
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.server import Call, IggyServer
from penstock.iggy.wire.codec import CHOICE_BYTES, choose
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.requests.call import ANONYMOUS
from penstock.session import PeerError, in_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.broker import Broker
    from penstock.iggy.wire.codec import AnyCodec
    from penstock.iggy.wire.replies import Reply
    from penstock.session import Answer, Buffers, Conflicts, Encoded, Transport

logger = logging.getLogger(__name__)


class Lane(IntEnum):
    """The kinds of requests of which the order differs."""

    SENDS = 0
    OTHERS = 1


CONFLICTS: Final[Conflicts] = ((Lane.OTHERS,), (Lane.OTHERS, Lane.SENDS))


class IggyRequest:
    """Implements penstock.session.Request."""

    __slots__ = ("asked", "call", "codec", "lane", "repetition")
    held_bytes = 0

    def __init__(self, codec: AnyCodec, asked: object, call: Call) -> None:
        self.codec = codec
        self.asked = asked
        self.call = call
        self.repetition = codec.repetition(asked)
        """Taken as it comes: a batch is stamped where it lies."""
        self.lane = Lane.SENDS if codec.is_send(asked) else Lane.OTHERS
        if self.repetition is not None and call.client.last_write.came(self.repetition):
            self.lane = Lane.OTHERS  # What it repeats may still be under way.

    def begin(self) -> Answer[Reply]:
        """Find out what is asked, after all that was asked before; see penstock.session."""
        handler = HANDLERS[self.codec.command(self.asked)]
        if not handler.without_login and not self._may_ask():
            raise IggyError(ErrorCode.UNAUTHENTICATED)
        if self.repetition is not None and self.call.client.last_write.begins(self.repetition):
            return self.call.client.last_write.reply()
        return handler.handle(self.codec.decode(self.asked, handler.request), self.call)

    def encode(self, reply: Reply) -> Encoded:
        """Return the reply's frame; see penstock.session."""
        self.call.client.silence.answered()
        encoded = self.codec.encode(self.asked, reply)
        if self.repetition is not None:
            size = None if isinstance(encoded, CoroutineType) else in_memory(encoded or ())
            self.call.client.last_write.done(self.repetition, reply, size)
        return encoded

    def refuse(self, error: Exception) -> Buffers:
        """Return the frame of a refusal; see penstock.session."""
        self.call.client.silence.answered()
        refusal = as_iggy_error(error)
        if refusal is None:
            raise error
        logger.debug("%s: refused: %s", self.call.client.transport.peer, refusal)
        parts = self.codec.encode_error(self.asked, refusal)
        if parts is None:
            raise PeerError(f"no request of Iggy's: {refusal}") from error
        return parts

    def _may_ask(self) -> bool:
        if self.call.principal is not ANONYMOUS:
            return True
        return not self.codec.needs_login and self.call.client.may_stay_anonymous


class IggySession:
    """Implements penstock.session.Session."""

    conflicts = CONFLICTS

    def __init__(self, server: IggyServer, transport: Transport) -> None:
        self._client = server.connect(transport)
        self._client.farewell = self._farewell
        self._addressee = b""
        self._codec: AnyCodec | None = None
        self._call: Call | None = None
        """The same for all requests: Iggy's carry nothing outside of themselves."""

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that begins with `head`; see penstock.session."""
        if self._codec is None:
            if len(head) < CHOICE_BYTES:
                return None
            self._codec = choose(head)
            self._client.has_heartbeat = self._codec.has_heartbeat
            self._call = Call(self._client, self._codec.version)
        try:
            return self._codec.frame_size(head)
        except IggyError as error:
            raise PeerError(f"no frame of Iggy's: {error}") from error

    def receive(self, frame: memoryview) -> IggyRequest:
        """Take one frame; see penstock.session."""
        assert self._codec is not None, "a frame comes after its size"
        assert self._call is not None
        try:
            asked = self._codec.parse(frame)
        except IggyError as error:
            raise PeerError(f"no request of Iggy's: {error}") from error
        self._client.silence.asked()
        self._addressee = self._codec.addressee(asked)
        return IggyRequest(self._codec, asked, self._call)

    def close(self) -> None:
        """Leave the groups and the list of clients; see penstock.session."""
        self._client.server.disconnect(self._client)

    def _farewell(self) -> Buffers:
        return () if self._codec is None else self._codec.encode_stale(self._addressee)


def sessions(broker: Broker) -> Callable[[Transport], IggySession]:
    """Return what makes the session of each connection. Called once a broker."""
    server = IggyServer(broker)
    return lambda transport: IggySession(server, transport)
