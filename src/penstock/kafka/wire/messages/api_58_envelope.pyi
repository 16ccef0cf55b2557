# Written by `make stubs` from 58_envelope.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class EnvelopeRequest(Struct):
    request_data: bytes = ...
    request_principal: bytes | None = ...
    client_host_address: bytes = ...

class EnvelopeRequestType(MessageType[EnvelopeRequest]):
    __call__: type[EnvelopeRequest]

class EnvelopeResponse(Struct):
    response_data: bytes | None = None
    error_code: int = 0

class EnvelopeResponseType(MessageType[EnvelopeResponse]):
    __call__: type[EnvelopeResponse]

class EnvelopeApi(Api[EnvelopeRequest, EnvelopeResponse]):
    request: EnvelopeRequestType
    response: EnvelopeResponseType
