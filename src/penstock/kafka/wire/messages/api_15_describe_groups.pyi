# Written by `make stubs` from 15_describe_groups.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeGroupsRequest(Struct):
    groups: list[str] = ...
    include_authorized_operations: bool = False

class DescribeGroupsRequestType(MessageType[DescribeGroupsRequest]):
    __call__: type[DescribeGroupsRequest]

class DescribeGroupsResponse(Struct):
    throttle_time_ms: int = 0
    groups: list[DescribeGroupsResponse.DescribedGroup] = ...

    class DescribedGroup(Struct):
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        protocol_type: str = ""
        protocol_data: str = ""
        members: list[DescribeGroupsResponse.DescribedGroupMember] = ...
        authorized_operations: int = ...

    class DescribedGroupMember(Struct):
        member_id: str = ""
        group_instance_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        member_metadata: bytes = ...
        member_assignment: bytes = ...

class DescribeGroupsResponseType(MessageType[DescribeGroupsResponse]):
    __call__: type[DescribeGroupsResponse]
    DescribedGroup = DescribeGroupsResponse.DescribedGroup
    DescribedGroupMember = DescribeGroupsResponse.DescribedGroupMember

class DescribeGroupsApi(Api[DescribeGroupsRequest, DescribeGroupsResponse]):
    request: DescribeGroupsRequestType
    response: DescribeGroupsResponseType
