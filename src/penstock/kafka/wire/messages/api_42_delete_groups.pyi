# Written by `make stubs` from 42_delete_groups.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteGroupsRequest(Struct):
    groups_names: list[str] = ...

class DeleteGroupsRequestType(MessageType[DeleteGroupsRequest]):
    __call__: type[DeleteGroupsRequest]

class DeleteGroupsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[DeleteGroupsResponse.DeletableGroupResult] = ...

    class DeletableGroupResult(Struct):
        group_id: str = ""
        error_code: int = 0
        error_message: str | None = None

class DeleteGroupsResponseType(MessageType[DeleteGroupsResponse]):
    __call__: type[DeleteGroupsResponse]
    DeletableGroupResult = DeleteGroupsResponse.DeletableGroupResult

class DeleteGroupsApi(Api[DeleteGroupsRequest, DeleteGroupsResponse]):
    request: DeleteGroupsRequestType
    response: DeleteGroupsResponseType
