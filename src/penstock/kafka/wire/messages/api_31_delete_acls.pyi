# Written by `make stubs` from 31_delete_acls.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteAclsRequest(Struct):
    filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = 0
        resource_name_filter: str | None = ""
        pattern_type_filter: int = 3
        principal_filter: str | None = ""
        host_filter: str | None = ""
        operation: int = 0
        permission_type: int = 0

class DeleteAclsRequestType(MessageType[DeleteAclsRequest]):
    __call__: type[DeleteAclsRequest]
    DeleteAclsFilter = DeleteAclsRequest.DeleteAclsFilter

class DeleteAclsResponse(Struct):
    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...

    class DeleteAclsFilterResult(Struct):
        error_code: int = 0
        error_message: str | None = ""
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...

    class DeleteAclsMatchingAcl(Struct):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

class DeleteAclsResponseType(MessageType[DeleteAclsResponse]):
    __call__: type[DeleteAclsResponse]
    DeleteAclsFilterResult = DeleteAclsResponse.DeleteAclsFilterResult
    DeleteAclsMatchingAcl = DeleteAclsResponse.DeleteAclsMatchingAcl

class DeleteAclsApi(Api[DeleteAclsRequest, DeleteAclsResponse]):
    request: DeleteAclsRequestType
    response: DeleteAclsResponseType
