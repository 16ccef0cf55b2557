# Written by `make stubs` from 16_list_groups.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListGroupsRequest(Struct):
    states_filter: list[str] = ...
    types_filter: list[str] = ...

class ListGroupsRequestType(MessageType[ListGroupsRequest]):
    __call__: type[ListGroupsRequest]

class ListGroupsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListGroupsResponse.ListedGroup] = ...

    class ListedGroup(Struct):
        group_id: str = ""
        protocol_type: str = ""
        group_state: str = ""
        group_type: str = ""

class ListGroupsResponseType(MessageType[ListGroupsResponse]):
    __call__: type[ListGroupsResponse]
    ListedGroup = ListGroupsResponse.ListedGroup

class ListGroupsApi(Api[ListGroupsRequest, ListGroupsResponse]):
    request: ListGroupsRequestType
    response: ListGroupsResponseType
