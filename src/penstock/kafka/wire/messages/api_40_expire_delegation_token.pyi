# Written by `make stubs` from 40_expire_delegation_token.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ExpireDelegationTokenRequest(Struct):
    hmac: bytes = ...
    expiry_time_period_ms: int = 0

class ExpireDelegationTokenRequestType(MessageType[ExpireDelegationTokenRequest]):
    __call__: type[ExpireDelegationTokenRequest]

class ExpireDelegationTokenResponse(Struct):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0

class ExpireDelegationTokenResponseType(MessageType[ExpireDelegationTokenResponse]):
    __call__: type[ExpireDelegationTokenResponse]

class ExpireDelegationTokenApi(Api[ExpireDelegationTokenRequest, ExpireDelegationTokenResponse]):
    request: ExpireDelegationTokenRequestType
    response: ExpireDelegationTokenResponseType
