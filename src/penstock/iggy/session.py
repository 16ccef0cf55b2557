"""One connection of an Iggy client: frames to commands, and their answers to frames.

Three dialects arrive on the same port. That of apache-iggy 0.9 is served; the two older ones share
a framing of their own, in which they hear that they are not available yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

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
from penstock.session import Deferred, PeerError

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.iggy.handlers.registry import Answer
    from penstock.iggy.wire.frame import RequestHeader
    from penstock.session import Buffers, Transport

_TOLD: Final[tuple[type[Exception], ...]] = (framing.EvictedError, *ANSWERED)
"""Exceptions that the client hears of; any other one is a bug."""

logger = logging.getLogger(__name__)


class IggySession:
    """Implements penstock.session.Session. Requests are carried out one after another."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        node = Node.of(broker)
        self._client = node.connect(transport)
        self._context = Context(node, self._client)
        self._last: asyncio.Future[None] | None = None
        """Done when the request is that was taken last."""

    def frame_size(self, head: memoryview) -> int | None:
        """Return the size of the frame that begins with `head`; see penstock.session."""
        try:
            if legacy.is_legacy(head):
                return legacy.frame_size(head)
            return framing.frame_size(head)
        except IggyError as error:
            raise PeerError(f"no frame of Iggy's: {error}") from error

    def receive(self, frame: memoryview) -> Awaitable[Buffers] | Buffers:
        """Answer one frame; see penstock.session."""
        if legacy.is_legacy(frame):
            return self._answer_legacy(frame)
        try:
            header = framing.parse_request(frame)
        except IggyError as error:
            raise PeerError(f"no request of Iggy's: {error}") from error
        body = frame[framing.HEADER_SIZE :]
        if self._last is not None and not self._last.done():
            return self._serve_later(self._last, self._begin(), header, body)
        answer = self._answer(header, body)
        if isinstance(answer, Deferred):
            self._last = answer.ready
        elif isinstance(answer, Awaitable):
            return _serve(answer, self._begin())
        return answer

    def close(self) -> None:
        """Leave the groups and the list of clients; see penstock.session."""
        self._context.node.disconnect(self._client)

    def _begin(self) -> asyncio.Future[None]:
        """Have the next request wait until the returned future is done."""
        self._last = asyncio.get_running_loop().create_future()
        return self._last

    async def _serve_later(
        self,
        before: asyncio.Future[None],
        done: asyncio.Future[None],
        header: RequestHeader,
        body: memoryview,
    ) -> Buffers:
        try:
            await asyncio.wait((before,))
            answer = self._answer(header, body)
            return await answer if isinstance(answer, Awaitable) else answer
        finally:
            done.set_result(None)

    def _answer(self, header: RequestHeader, body: memoryview) -> Awaitable[Buffers] | Buffers:
        if header.operation == Operation.REGISTER:
            return log_in(self._context, header, body)
        try:
            answer = self._carry_out(header, body)
        except _TOLD as error:
            return _tell(header, error)
        if isinstance(answer, Deferred):
            if answer.ready.done():  # as for every send that need not reach the disk
                return _finish(header, answer)
            return Deferred(answer.ready, lambda _: _finish(header, answer))
        return _wait(header, answer)

    def _carry_out(self, header: RequestHeader, body: memoryview) -> Awaitable[Answer]:
        handler = HANDLERS[_command(header)]
        if self._client.session is None and not handler.without_login:
            if header.operation != Operation.NON_REPLICATED:
                raise framing.EvictedError(framing.EvictionReason.NO_SESSION)
            raise IggyError(ErrorCode.UNAUTHENTICATED)
        return handler.answer(self._context, handler.request.decode(body))

    def _answer_legacy(self, frame: memoryview) -> Buffers:
        command = legacy.command(frame)
        if command == Command.PING:
            return [legacy.build_reply(ErrorCode.OK)]
        logger.info(
            "%s speaks an Iggy dialect from before apache-iggy 0.9, which is not served yet",
            self._client.transport.peer,
        )
        return [legacy.build_reply(ErrorCode.FEATURE_UNAVAILABLE)]


async def _serve(answer: Awaitable[Buffers], done: asyncio.Future[None]) -> Buffers:
    try:
        return await answer
    finally:
        done.set_result(None)


async def _wait(header: RequestHeader, answer: Awaitable[Answer]) -> Buffers:
    try:
        return _reply(header, await answer)
    except _TOLD as error:
        return _tell(header, error)


def _finish(header: RequestHeader, answer: Deferred[Answer]) -> Buffers:
    try:
        return _reply(header, answer.result())
    except _TOLD as error:
        return _tell(header, error)


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


def _reply(header: RequestHeader, answer: Answer) -> Buffers:
    parts: Buffers = [answer.encode()] if isinstance(answer, Message) else answer or []
    if framing.has_result_section(header.operation):
        parts = [framing.ACCEPTED, *parts]
    return framing.build_reply(header, parts)


def _tell(header: RequestHeader, error: Exception) -> Buffers:
    if isinstance(error, framing.EvictedError):
        return [framing.build_eviction(header.client, error.reason)]
    code = error_code(error)
    logger.debug("operation %d, code %d refused: %s", header.operation, header.code, error)
    if framing.has_result_section(header.operation):
        return framing.build_reply(header, [framing.rejected(code)])
    return framing.build_reply(header, status=code)
