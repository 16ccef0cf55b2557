# Written by `make stubs` from 29_describe_acls.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeAclsRequest(Struct):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0

class DescribeAclsRequestType(MessageType[DescribeAclsRequest]):
    __call__: type[DescribeAclsRequest]

class DescribeAclsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResponse.DescribeAclsResource] = ...

    class DescribeAclsResource(Struct):
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        acls: list[DescribeAclsResponse.AclDescription] = ...

    class AclDescription(Struct):
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

class DescribeAclsResponseType(MessageType[DescribeAclsResponse]):
    __call__: type[DescribeAclsResponse]
    DescribeAclsResource = DescribeAclsResponse.DescribeAclsResource
    AclDescription = DescribeAclsResponse.AclDescription

class DescribeAclsApi(Api[DescribeAclsRequest, DescribeAclsResponse]):
    request: DescribeAclsRequestType
    response: DescribeAclsResponseType
