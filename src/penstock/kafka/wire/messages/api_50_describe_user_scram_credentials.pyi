# Written by `make stubs` from 50_describe_user_scram_credentials.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeUserScramCredentialsRequest(Struct):
    users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...

    class UserName(Struct):
        name: str = ""

class DescribeUserScramCredentialsRequestType(MessageType[DescribeUserScramCredentialsRequest]):
    __call__: type[DescribeUserScramCredentialsRequest]
    UserName = DescribeUserScramCredentialsRequest.UserName

class DescribeUserScramCredentialsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...

    class DescribeUserScramCredentialsResult(Struct):
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...

    class CredentialInfo(Struct):
        mechanism: int = 0
        iterations: int = 0

class DescribeUserScramCredentialsResponseType(MessageType[DescribeUserScramCredentialsResponse]):
    __call__: type[DescribeUserScramCredentialsResponse]
    DescribeUserScramCredentialsResult = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    CredentialInfo = DescribeUserScramCredentialsResponse.CredentialInfo

class DescribeUserScramCredentialsApi(Api[DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse]):
    request: DescribeUserScramCredentialsRequestType
    response: DescribeUserScramCredentialsResponseType
