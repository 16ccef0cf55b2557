"""Kafka's protocol: bytes to messages and back, for a server and a client, with no I/O.

`messages/NN_name.schema` is the protocol: one file an API, all versions since the first. A server:

    PRODUCE = api("Produce")
    header = decode_request_header(frame)            # a whole frame, its size included
    if header.version not in PRODUCE.versions: ...   # the body of an unknown version is not read
    request = header.api.request.decode(frame, header.version, header.body_start)
    for topic in request.topic_data: ...             # attributes: the schema's names, in snake case
    reply = PRODUCE.response                         # construct with keywords, rest has defaults
    topic = reply.TopicProduceResponse(name="a", partition_responses=[...])
    answer = reply(responses=[topic])
    parts = encode_response(PRODUCE, header.version, header.correlation_id, answer)

A client: `encode_request(PRODUCE, 9, correlation_id, "client", PRODUCE.request(acks=-1, ...))`, and
`correlation_id_of(frame)`, `decode_response(PRODUCE, 9, frame)`. The same objects serve every
version: what a version lacks is left out, and reads as its default. `records` of a decoded message
are memoryviews of the frame; in a message to encode they are a buffer or a sequence of buffers, and
come out as parts of their own, uncopied. Decoding raises MalformedMessageError and nothing else.
What may have many elements is decoded and encoded in steps: `MessageType.decode_in_steps`, and
`encode_response_in_steps` where `encode_response` raises ManyElementsError.
Ids of topics are `uuid.UUID` (none: NO_UUID), times are milliseconds, errors are in `ErrorCode`.

To a type checker every field has its type, from the stubs that `make stubs` writes. Annotations
take them from `penstock.kafka.wire.messages`, which is there for type checkers only:

    if TYPE_CHECKING:
        from penstock.kafka.wire.messages import ProduceRequest

    def size(data: ProduceRequest.TopicProduceData) -> int: ...
"""

from typing import TYPE_CHECKING

from penstock.kafka.wire.apis import APIS, AnyApi, Api, MessageType, api_by_key
from penstock.kafka.wire.encoding import ManyElementsError
from penstock.kafka.wire.error_codes import ErrorCode
from penstock.kafka.wire.frames import (
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_in_steps,
    frame_size,
)
from penstock.kafka.wire.primitives import NO_UUID, MalformedMessageError, TooManyElementsError
from penstock.kafka.wire.schema import Versions
from penstock.kafka.wire.structs import Struct, taking_apart

if TYPE_CHECKING:
    # The same function, with the types of each API's messages.
    from penstock.kafka.wire.messages import api
else:
    from penstock.kafka.wire.apis import api

__all__ = [
    "APIS",
    "NO_UUID",
    "AnyApi",
    "Api",
    "ErrorCode",
    "MalformedMessageError",
    "ManyElementsError",
    "MessageType",
    "RequestHeader",
    "Struct",
    "TooManyElementsError",
    "Versions",
    "api",
    "api_by_key",
    "correlation_id_of",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_request",
    "encode_response",
    "encode_response_in_steps",
    "frame_size",
    "taking_apart",
]
