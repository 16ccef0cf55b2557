# Written by `make stubs` from 17_sasl_handshake.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class SaslHandshakeRequest(Struct):
    mechanism: str = ""

class SaslHandshakeRequestType(MessageType[SaslHandshakeRequest]):
    __call__: type[SaslHandshakeRequest]

class SaslHandshakeResponse(Struct):
    error_code: int = 0
    mechanisms: list[str] = ...

class SaslHandshakeResponseType(MessageType[SaslHandshakeResponse]):
    __call__: type[SaslHandshakeResponse]

class SaslHandshakeApi(Api[SaslHandshakeRequest, SaslHandshakeResponse]):
    request: SaslHandshakeRequestType
    response: SaslHandshakeResponseType
