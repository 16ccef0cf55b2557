# Written by `make stubs` from 32_describe_configs.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeConfigsRequest(Struct):
    resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ...
    include_synonyms: bool = False
    include_documentation: bool = False

    class DescribeConfigsResource(Struct):
        resource_type: int = 0
        resource_name: str = ""
        configuration_keys: list[str] | None = ...

class DescribeConfigsRequestType(MessageType[DescribeConfigsRequest]):
    __call__: type[DescribeConfigsRequest]
    DescribeConfigsResource = DescribeConfigsRequest.DescribeConfigsResource

class DescribeConfigsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...

    class DescribeConfigsResult(Struct):
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...

    class DescribeConfigsResourceResult(Struct):
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        is_default: bool = False
        config_source: int = -1
        is_sensitive: bool = False
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ...
        config_type: int = 0
        documentation: str | None = ""

    class DescribeConfigsSynonym(Struct):
        name: str = ""
        value: str | None = ""
        source: int = 0

class DescribeConfigsResponseType(MessageType[DescribeConfigsResponse]):
    __call__: type[DescribeConfigsResponse]
    DescribeConfigsResult = DescribeConfigsResponse.DescribeConfigsResult
    DescribeConfigsResourceResult = DescribeConfigsResponse.DescribeConfigsResourceResult
    DescribeConfigsSynonym = DescribeConfigsResponse.DescribeConfigsSynonym

class DescribeConfigsApi(Api[DescribeConfigsRequest, DescribeConfigsResponse]):
    request: DescribeConfigsRequestType
    response: DescribeConfigsResponseType
