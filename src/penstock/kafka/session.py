"""One Kafka client's connection: frames to requests, and replies to frames.

Kafka serves one request of a connection after the other. Here a Produce runs beside others and
beside a Fetch, for it appends before it waits, and a fetch that waits must not hold it up. Fetches
follow one another, for the answer of one may be large. Everything else runs alone, so that a client
that does not wait for answers sees its requests' effects in order. The server keeps the answers in
order in any case.
"""

from __future__ import annotations

from enum import IntEnum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.broker.quotas import Quota
from penstock.kafka.client import Call, Client
from penstock.kafka.handlers import HANDLERS
from penstock.kafka.handlers.api_18_api_versions import API_VERSIONS, unsupported_version
from penstock.kafka.quotas import throttled_ms, unthrottled
from penstock.kafka.wire import (
    ManyElementsError,
    TooManyElementsError,
    decode_request_header,
    encode_response,
    encode_response_in_steps,
    frame_size,
    taking_apart,
)
from penstock.limits import KAFKA_ELEMENTS_AT_ONCE, KAFKA_REQUEST_BYTES, KAFKA_REQUEST_ELEMENTS
from penstock.pace import Pace
from penstock.session import Deferred, PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.broker import Broker
    from penstock.kafka.handlers.registry import Handle
    from penstock.kafka.wire import RequestHeader, Struct
    from penstock.kafka.wire.messages import ProduceResponse
    from penstock.session import Answer, Buffers, Conflicts, Encoded, Transport


class Lane(IntEnum):
    """The kinds of requests of which the order differs."""

    PRODUCE = 0
    FETCH = 1
    OTHERS = 2


PRODUCE, FETCH = 0, 1
LANE_OF: Final = {PRODUCE: Lane.PRODUCE, FETCH: Lane.FETCH}
"""By the API's key; of the others it is OTHERS."""

CONFLICTS: Final[Conflicts] = (
    (Lane.OTHERS,),
    (Lane.OTHERS, Lane.FETCH),
    (Lane.OTHERS, Lane.FETCH, Lane.PRODUCE),
)

_REQUEST_BYTES: Final = 1_000
"""What a decoded request takes beside its values, with its place among those that wait."""
_ELEMENT_BYTES: Final = 300
"""The most that the object of an element takes, with its numbers and the heads of its strings."""
_DECODED_BYTES: Final = 64
"""The most that any byte of a frame becomes."""


class KafkaRequest(Call):
    """A `penstock.session.Request`; it is its own call.

    One that may have many elements is a LargeRequest, of which the message is not decoded yet.
    """

    __slots__ = ("_handle", "_throttle_ms", "header", "held_bytes", "lane", "message", "size")

    def __init__(
        self,
        client: Client,
        header: RequestHeader,
        handle: Handle[Any, Any],
        size: int,
        message: Struct | None = None,
        elements: int = 0,
    ) -> None:
        self.client = client
        self.held_bytes = _REQUEST_BYTES + elements * _ELEMENT_BYTES
        self.size = size
        self._throttle_ms = 0
        self.version = header.version
        self.client_id = header.client_id or ""
        self.lane = LANE_OF.get(header.api.key, Lane.OTHERS)
        self.header = header
        self._handle = handle
        self.message = message

    def begin(self) -> Answer[Struct | None]:
        if self.client.throttled_until:
            return self._begun_unthrottled()
        return self._begun()

    async def _begun_unthrottled(self) -> Struct | None:
        await unthrottled(self.client)
        return await _ended(self._begun())

    def _begun(self) -> Answer[Struct | None]:
        answer = self._handle(self.message, self)
        if self.header.api.key == PRODUCE and self.client.broker.quotas:
            self._throttle_ms = throttled_ms(
                self.client, Quota.PRODUCED_BYTES, self.client_id, self.size
            )
        return answer

    def encode(self, reply: Struct | None) -> Encoded:
        if reply is None:
            return None
        header = self.header
        if self._throttle_ms:
            cast("ProduceResponse", reply).throttle_time_ms = self._throttle_ms
        try:
            return encode_response(header.api, header.version, header.correlation_id, reply)
        except ManyElementsError:
            return cast("CoroutineType[Any, Any, Buffers]", self._encoded_in_steps(reply))

    async def _encoded_in_steps(self, reply: Struct) -> Buffers:
        header = self.header
        parts = await encode_response_in_steps(
            header.api, header.version, header.correlation_id, reply
        )
        await Pace().through(taking_apart(reply))
        return parts

    def refuse(self, error: Exception) -> Buffers | None:
        # Handlers put their refusals into their replies, each in its own place.
        raise error


class LargeRequest(KafkaRequest):
    """A request with so many elements that it is decoded in its turn, and in steps.

    No other one of its connection runs beside it, so that its own steps are in order.
    """

    __slots__ = ("frame",)
    is_large = True

    def __init__(
        self, client: Client, header: RequestHeader, handle: Handle[Any, Any], frame: memoryview
    ) -> None:
        super().__init__(client, header, handle, len(frame))
        self.lane = Lane.OTHERS
        self.frame = frame

    def _begun(self) -> Answer[Struct | None]:
        return self._decoded_and_begun()

    async def _decoded_and_begun(self) -> Struct | None:
        header = self.header
        with self.client.broker.memory.reading() as held:
            most = min(self.size * _DECODED_BYTES, KAFKA_REQUEST_ELEMENTS * _ELEMENT_BYTES)
            await held.grant(most, most)
            message, elements = await header.api.request.decode_in_steps(
                self.frame, header.version, header.body_start
            )
            held.set(elements * _ELEMENT_BYTES)
            self.message = message
            answer = await _ended(super()._begun())
            self.message = None
            await Pace().through(taking_apart(message))
        return answer


class KafkaSession:
    """A `penstock.session.Session`."""

    conflicts = CONFLICTS

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self._client = Client(broker, transport)

    def frame_size(self, head: memoryview) -> int | None:
        return frame_size(head, KAFKA_REQUEST_BYTES)

    def receive(self, frame: memoryview) -> KafkaRequest:
        header = decode_request_header(frame)
        handler = HANDLERS.get(header.api.key)
        if handler is None:
            raise PeerError(f"{header.api.name} is not served")
        if header.version in handler.versions:
            try:
                message, elements = header.api.request.decode_counted(
                    frame, header.version, header.body_start, KAFKA_ELEMENTS_AT_ONCE
                )
            except TooManyElementsError:
                return LargeRequest(self._client, header, handler.handle, frame)
            return KafkaRequest(self._client, header, handler.handle, len(frame), message, elements)
        if header.api.key == API_VERSIONS:
            in_version_0 = header._replace(version=0)
            message = header.api.request()
            return KafkaRequest(
                self._client, in_version_0, unsupported_version, len(frame), message
            )
        raise PeerError(
            f"{header.api.name} version {header.version} is not served, only {handler.versions}"
        )

    def close(self) -> None:
        self._client.gone()


async def _ended(answer: Answer[Struct | None]) -> Struct | None:
    if isinstance(answer, Deferred | CoroutineType):
        answer = await answer
    return cast("Struct | None", answer)


def sessions(broker: Broker) -> Callable[[Transport], KafkaSession]:
    """Return what makes the session of each connection. Called once a broker."""
    return lambda transport: KafkaSession(broker, transport)
