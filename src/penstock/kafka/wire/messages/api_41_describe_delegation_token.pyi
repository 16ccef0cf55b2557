# Written by `make stubs` from 41_describe_delegation_token.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeDelegationTokenRequest(Struct):
    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = ""
        principal_name: str = ""

class DescribeDelegationTokenRequestType(MessageType[DescribeDelegationTokenRequest]):
    __call__: type[DescribeDelegationTokenRequest]
    DescribeDelegationTokenOwner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner

class DescribeDelegationTokenResponse(Struct):
    error_code: int = 0
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...
    throttle_time_ms: int = 0

    class DescribedDelegationToken(Struct):
        principal_type: str = ""
        principal_name: str = ""
        token_requester_principal_type: str = ""
        token_requester_principal_name: str = ""
        issue_timestamp: int = 0
        expiry_timestamp: int = 0
        max_timestamp: int = 0
        token_id: str = ""
        hmac: bytes = ...
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = ""
        principal_name: str = ""

class DescribeDelegationTokenResponseType(MessageType[DescribeDelegationTokenResponse]):
    __call__: type[DescribeDelegationTokenResponse]
    DescribedDelegationToken = DescribeDelegationTokenResponse.DescribedDelegationToken
    DescribedDelegationTokenRenewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer

class DescribeDelegationTokenApi(Api[DescribeDelegationTokenRequest, DescribeDelegationTokenResponse]):
    request: DescribeDelegationTokenRequestType
    response: DescribeDelegationTokenResponseType
