# Written by `make stubs` from 74_list_config_resources.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListConfigResourcesRequest(Struct):
    resource_types: list[int] = ...

class ListConfigResourcesRequestType(MessageType[ListConfigResourcesRequest]):
    __call__: type[ListConfigResourcesRequest]

class ListConfigResourcesResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...

    class ConfigResource(Struct):
        resource_name: str = ""
        resource_type: int = 16

class ListConfigResourcesResponseType(MessageType[ListConfigResourcesResponse]):
    __call__: type[ListConfigResourcesResponse]
    ConfigResource = ListConfigResourcesResponse.ConfigResource

class ListConfigResourcesApi(Api[ListConfigResourcesRequest, ListConfigResourcesResponse]):
    request: ListConfigResourcesRequestType
    response: ListConfigResourcesResponseType
