# Written by `make stubs` from 33_alter_configs.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterConfigsRequest(Struct):
    resources: list[AlterConfigsRequest.AlterConfigsResource] = ...
    validate_only: bool = False

    class AlterConfigsResource(Struct):
        resource_type: int = 0
        resource_name: str = ""
        configs: list[AlterConfigsRequest.AlterableConfig] = ...

    class AlterableConfig(Struct):
        name: str = ""
        value: str | None = ""

class AlterConfigsRequestType(MessageType[AlterConfigsRequest]):
    __call__: type[AlterConfigsRequest]
    AlterConfigsResource = AlterConfigsRequest.AlterConfigsResource
    AlterableConfig = AlterConfigsRequest.AlterableConfig

class AlterConfigsResponse(Struct):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...

    class AlterConfigsResourceResponse(Struct):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""

class AlterConfigsResponseType(MessageType[AlterConfigsResponse]):
    __call__: type[AlterConfigsResponse]
    AlterConfigsResourceResponse = AlterConfigsResponse.AlterConfigsResourceResponse

class AlterConfigsApi(Api[AlterConfigsRequest, AlterConfigsResponse]):
    request: AlterConfigsRequestType
    response: AlterConfigsResponseType
