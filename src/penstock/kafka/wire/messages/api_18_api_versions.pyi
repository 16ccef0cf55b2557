# Written by `make stubs` from 18_api_versions.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ApiVersionsRequest(Struct):
    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1

class ApiVersionsRequestType(MessageType[ApiVersionsRequest]):
    __call__: type[ApiVersionsRequest]

class ApiVersionsResponse(Struct):
    error_code: int = 0
    api_keys: list[ApiVersionsResponse.ApiVersion] = ...
    throttle_time_ms: int = 0
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...
    finalized_features_epoch: int = -1
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...
    zk_migration_ready: bool = False

    class ApiVersion(Struct):
        api_key: int = 0
        min_version: int = 0
        max_version: int = 0

    class SupportedFeatureKey(Struct):
        name: str = ""
        min_version: int = 0
        max_version: int = 0

    class FinalizedFeatureKey(Struct):
        name: str = ""
        max_version_level: int = 0
        min_version_level: int = 0

class ApiVersionsResponseType(MessageType[ApiVersionsResponse]):
    __call__: type[ApiVersionsResponse]
    ApiVersion = ApiVersionsResponse.ApiVersion
    SupportedFeatureKey = ApiVersionsResponse.SupportedFeatureKey
    FinalizedFeatureKey = ApiVersionsResponse.FinalizedFeatureKey

class ApiVersionsApi(Api[ApiVersionsRequest, ApiVersionsResponse]):
    request: ApiVersionsRequestType
    response: ApiVersionsResponseType
