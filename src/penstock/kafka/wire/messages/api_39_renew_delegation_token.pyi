# Written by `make stubs` from 39_renew_delegation_token.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class RenewDelegationTokenRequest(Struct):
    hmac: bytes = ...
    renew_period_ms: int = 0

class RenewDelegationTokenRequestType(MessageType[RenewDelegationTokenRequest]):
    __call__: type[RenewDelegationTokenRequest]

class RenewDelegationTokenResponse(Struct):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0

class RenewDelegationTokenResponseType(MessageType[RenewDelegationTokenResponse]):
    __call__: type[RenewDelegationTokenResponse]

class RenewDelegationTokenApi(Api[RenewDelegationTokenRequest, RenewDelegationTokenResponse]):
    request: RenewDelegationTokenRequestType
    response: RenewDelegationTokenResponseType
