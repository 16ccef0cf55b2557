# Written by `make stubs` from 44_incremental_alter_configs.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class IncrementalAlterConfigsRequest(Struct):
    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...
    validate_only: bool = False

    class AlterConfigsResource(Struct):
        resource_type: int = 0
        resource_name: str = ""
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...

    class AlterableConfig(Struct):
        name: str = ""
        config_operation: int = 0
        value: str | None = ""

class IncrementalAlterConfigsRequestType(MessageType[IncrementalAlterConfigsRequest]):
    __call__: type[IncrementalAlterConfigsRequest]
    AlterConfigsResource = IncrementalAlterConfigsRequest.AlterConfigsResource
    AlterableConfig = IncrementalAlterConfigsRequest.AlterableConfig

class IncrementalAlterConfigsResponse(Struct):
    throttle_time_ms: int = 0
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...

    class AlterConfigsResourceResponse(Struct):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""

class IncrementalAlterConfigsResponseType(MessageType[IncrementalAlterConfigsResponse]):
    __call__: type[IncrementalAlterConfigsResponse]
    AlterConfigsResourceResponse = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse

class IncrementalAlterConfigsApi(Api[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]):
    request: IncrementalAlterConfigsRequestType
    response: IncrementalAlterConfigsResponseType
