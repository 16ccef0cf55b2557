"""One Kafka client's connection: frames to requests, requests to handlers, answers to frames.

Kafka serves one request of a connection after the other. Here a Produce runs beside others and
beside a Fetch, for it appends before it waits, and a fetch that waits must not hold it up. Fetches
follow one another, for the answer of one may be large. Everything else runs alone, so that a client
that does not wait for answers sees its requests' effects in order. The server keeps the answers in
order in any case.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers import HANDLERS, Call, Client, Handler
from penstock.kafka.handlers.api_18_api_versions import unsupported_version
from penstock.kafka.wire import (
    Struct,
    decode_request_header,
    encode_response,
    frame_size,
)
from penstock.limits import KAFKA_REQUEST_BYTES
from penstock.session import Deferred, PeerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from penstock.broker.broker import Broker
    from penstock.kafka.wire import RequestHeader
    from penstock.session import Buffers, Transport

PRODUCE: Final = 0
FETCH: Final = 1
API_VERSIONS: Final = 18
OTHERS: Final = -1
"""Stands for all APIs but the two."""
MUST_END_BEFORE: Final = {
    PRODUCE: (OTHERS,),
    FETCH: (OTHERS, FETCH),
    OTHERS: (OTHERS, FETCH, PRODUCE),
}
"""The requests that have to end before one of an API begins."""


class KafkaSession:
    """A `penstock.session.Session`."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self._client = Client(broker, transport)
        self._running: dict[int, set[asyncio.Future[None]]] = {
            key: set() for key in MUST_END_BEFORE
        }
        """What is done when a request is that runs or waits for its turn, by API."""

    def frame_size(self, head: memoryview) -> int | None:
        return frame_size(head, KAFKA_REQUEST_BYTES)

    def receive(self, frame: memoryview) -> Awaitable[Buffers | None] | Buffers | None:
        header = decode_request_header(frame)
        handler = HANDLERS.get(header.api.key)
        if handler is None:
            raise PeerError(f"{header.api.name} is not served")
        if header.version not in handler.versions:
            if header.api.key == API_VERSIONS:
                return encode_response(header.api, 0, header.correlation_id, unsupported_version())
            raise PeerError(
                f"{header.api.name} version {header.version} is not served, only {handler.versions}"
            )
        request: Struct = header.api.request.decode(frame, header.version, header.body_start)
        call = Call(self._client, header.version, header.client_id or "")
        key = header.api.key if header.api.key in MUST_END_BEFORE else OTHERS
        before = [done for other in MUST_END_BEFORE[key] for done in self._running[other]]
        running = self._running[key]
        if before:
            return self._serve_later(before, _begin(running), handler, request, header)
        answer = handler.handle(request, call)
        if answer is None or isinstance(answer, Struct):
            return _encode(header, answer)
        if isinstance(answer, Deferred):
            return _defer(answer, running, header)
        return _serve(answer, _begin(running), header)

    def close(self) -> None:
        self._client.gone()

    async def _serve_later(
        self,
        before: Iterable[asyncio.Future[None]],
        done: asyncio.Future[None],
        handler: Handler,
        request: Struct,
        header: RequestHeader,
    ) -> Buffers | None:
        try:
            await asyncio.wait(before)
            call = Call(self._client, header.version, header.client_id or "")
            answer = handler.handle(request, call)
            if answer is None or isinstance(answer, Struct):
                return _encode(header, answer)
            waiting: Awaitable[Struct | None] = answer
            return _encode(header, await waiting)
        finally:
            done.set_result(None)


async def _serve(
    answer: Awaitable[Struct | None], done: asyncio.Future[None], header: RequestHeader
) -> Buffers | None:
    try:
        return _encode(header, await answer)
    finally:
        done.set_result(None)


def _begin(running: set[asyncio.Future[None]]) -> asyncio.Future[None]:
    """Note among those that run a request that does so until the returned future is done."""
    done = asyncio.get_running_loop().create_future()
    running.add(done)
    done.add_done_callback(running.discard)
    return done


def _defer(
    answer: Deferred[Struct], running: set[asyncio.Future[None]], header: RequestHeader
) -> Deferred[Buffers | None]:
    def finish(_: BaseException | None) -> Buffers | None:
        running.discard(answer.ready)
        return _encode(header, answer.result())

    running.add(answer.ready)
    return Deferred(answer.ready, finish)


def _encode(header: RequestHeader, answer: Struct | None) -> Buffers | None:
    if answer is None:
        return None
    return encode_response(header.api, header.version, header.correlation_id, answer)
