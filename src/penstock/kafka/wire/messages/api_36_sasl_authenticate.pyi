# Written by `make stubs` from 36_sasl_authenticate.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class SaslAuthenticateRequest(Struct):
    auth_bytes: bytes = ...

class SaslAuthenticateRequestType(MessageType[SaslAuthenticateRequest]):
    __call__: type[SaslAuthenticateRequest]

class SaslAuthenticateResponse(Struct):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = ...
    session_lifetime_ms: int = 0

class SaslAuthenticateResponseType(MessageType[SaslAuthenticateResponse]):
    __call__: type[SaslAuthenticateResponse]

class SaslAuthenticateApi(Api[SaslAuthenticateRequest, SaslAuthenticateResponse]):
    request: SaslAuthenticateRequestType
    response: SaslAuthenticateResponseType
