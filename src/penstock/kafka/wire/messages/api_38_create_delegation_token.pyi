# Written by `make stubs` from 38_create_delegation_token.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class CreateDelegationTokenRequest(Struct):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ...
    max_lifetime_ms: int = 0

    class CreatableRenewers(Struct):
        principal_type: str = ""
        principal_name: str = ""

class CreateDelegationTokenRequestType(MessageType[CreateDelegationTokenRequest]):
    __call__: type[CreateDelegationTokenRequest]
    CreatableRenewers = CreateDelegationTokenRequest.CreatableRenewers

class CreateDelegationTokenResponse(Struct):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = ...
    throttle_time_ms: int = 0

class CreateDelegationTokenResponseType(MessageType[CreateDelegationTokenResponse]):
    __call__: type[CreateDelegationTokenResponse]

class CreateDelegationTokenApi(Api[CreateDelegationTokenRequest, CreateDelegationTokenResponse]):
    request: CreateDelegationTokenRequestType
    response: CreateDelegationTokenResponseType
