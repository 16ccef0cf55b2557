"""One connection of an Iggy client: frames to commands, and their answers to frames.

Three dialects arrive on the same port. That of apache-iggy 0.9 is served; the two older ones share
a framing of their own, in which they hear that they are not available yet.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.iggy.errors import ANSWERED, error_code
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.handlers.registry import Context
from penstock.iggy.login import log_in
from penstock.iggy.node import Node
from penstock.iggy.wire import frame as framing
from penstock.iggy.wire import legacy
from penstock.iggy.wire.commands import COMMAND_OF, NON_REPLICATED, Command, Operation
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.message import Message
from penstock.session import PeerError

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.iggy.wire.frame import RequestHeader
    from penstock.session import Buffers, Transport

_logger = logging.getLogger(__name__)


class IggySession:
    """Implements penstock.session.Session. Requests are carried out one after another."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        node = Node.of(broker)
        self._client = node.connect(transport)
        self._context = Context(node, self._client)
        self._turn = asyncio.Lock()

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that begins with `head`; see penstock.session."""
        try:
            if legacy.is_legacy(head):
                return legacy.frame_size(head)
            return framing.frame_size(head)
        except IggyError as error:
            raise PeerError(f"no frame of Iggy's: {error}") from error

    async def receive(self, frame: memoryview) -> Buffers | None:
        """Answer one frame; see penstock.session."""
        if legacy.is_legacy(frame):
            return self._answer_legacy(frame)
        try:
            header = framing.parse_request(frame)
        except IggyError as error:
            raise PeerError(f"no request of Iggy's: {error}") from error
        async with self._turn:
            return await self._answer(header, frame[framing.HEADER_SIZE :])

    def close(self) -> None:
        """Leave the groups and the list of clients; see penstock.session."""
        self._context.node.disconnect(self._client)

    async def _answer(self, header: RequestHeader, body: memoryview) -> Buffers:
        if header.operation == Operation.REGISTER:
            return log_in(self._context, header, body)
        try:
            parts = await self._carry_out(header, body)
        except framing.EvictedError as eviction:
            return [framing.build_eviction(header.client, eviction.reason)]
        except ANSWERED as error:
            return _refuse(header, error)
        if framing.has_result_section(header.operation):
            parts = [framing.ACCEPTED, *parts]
        return framing.build_reply(header, parts)

    async def _carry_out(self, header: RequestHeader, body: memoryview) -> Buffers:
        handler = HANDLERS[_command(header)]
        if self._client.session is None and not handler.without_login:
            if header.operation != Operation.NON_REPLICATED:
                raise framing.EvictedError(framing.EvictionReason.NO_SESSION)
            raise IggyError(ErrorCode.UNAUTHENTICATED)
        answer = await handler.answer(self._context, handler.request.decode(body))
        if answer is None:
            return []
        return [answer.encode()] if isinstance(answer, Message) else answer

    def _answer_legacy(self, frame: memoryview) -> Buffers:
        command = legacy.command(frame)
        if command == Command.PING:
            return [legacy.build_reply(ErrorCode.OK)]
        _logger.info(
            "%s speaks an Iggy dialect from before apache-iggy 0.9, which is not served yet",
            self._client.transport.peer,
        )
        return [legacy.build_reply(ErrorCode.FEATURE_UNAVAILABLE)]


def _command(header: RequestHeader) -> Command:
    if header.operation != Operation.NON_REPLICATED:
        try:
            return COMMAND_OF[Operation(header.operation)]
        except ValueError as error:
            raise framing.EvictedError(framing.EvictionReason.INVALID_REQUEST_OPERATION) from error
    if header.code in {Command.LOGIN_USER, Command.LOGIN_WITH_PERSONAL_ACCESS_TOKEN}:
        raise framing.EvictedError(framing.EvictionReason.MALFORMED_LOGIN)
    if header.code not in NON_REPLICATED:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"code {header.code}")
    return Command(header.code)


def _refuse(header: RequestHeader, error: Exception) -> Buffers:
    code = error_code(error)
    _logger.debug("operation %d, code %d refused: %s", header.operation, header.code, error)
    if framing.has_result_section(header.operation):
        return framing.build_reply(header, [framing.rejected(code)])
    return framing.build_reply(header, status=code)
