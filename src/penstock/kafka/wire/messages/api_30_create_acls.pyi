# Written by `make stubs` from 30_create_acls.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class CreateAclsRequest(Struct):
    creations: list[CreateAclsRequest.AclCreation] = ...

    class AclCreation(Struct):
        resource_type: int = 0
        resource_name: str = ""
        resource_pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

class CreateAclsRequestType(MessageType[CreateAclsRequest]):
    __call__: type[CreateAclsRequest]
    AclCreation = CreateAclsRequest.AclCreation

class CreateAclsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[CreateAclsResponse.AclCreationResult] = ...

    class AclCreationResult(Struct):
        error_code: int = 0
        error_message: str | None = ""

class CreateAclsResponseType(MessageType[CreateAclsResponse]):
    __call__: type[CreateAclsResponse]
    AclCreationResult = CreateAclsResponse.AclCreationResult

class CreateAclsApi(Api[CreateAclsRequest, CreateAclsResponse]):
    request: CreateAclsRequestType
    response: CreateAclsResponseType
