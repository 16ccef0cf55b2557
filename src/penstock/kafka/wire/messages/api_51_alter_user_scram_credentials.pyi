# Written by `make stubs` from 51_alter_user_scram_credentials.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterUserScramCredentialsRequest(Struct):
    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...

    class ScramCredentialDeletion(Struct):
        name: str = ""
        mechanism: int = 0

    class ScramCredentialUpsertion(Struct):
        name: str = ""
        mechanism: int = 0
        iterations: int = 0
        salt: bytes = ...
        salted_password: bytes = ...

class AlterUserScramCredentialsRequestType(MessageType[AlterUserScramCredentialsRequest]):
    __call__: type[AlterUserScramCredentialsRequest]
    ScramCredentialDeletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    ScramCredentialUpsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion

class AlterUserScramCredentialsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...

    class AlterUserScramCredentialsResult(Struct):
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""

class AlterUserScramCredentialsResponseType(MessageType[AlterUserScramCredentialsResponse]):
    __call__: type[AlterUserScramCredentialsResponse]
    AlterUserScramCredentialsResult = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult

class AlterUserScramCredentialsApi(Api[AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse]):
    request: AlterUserScramCredentialsRequestType
    response: AlterUserScramCredentialsResponseType
