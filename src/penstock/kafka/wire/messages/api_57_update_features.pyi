# Written by `make stubs` from 57_update_features.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class UpdateFeaturesRequest(Struct):
    timeout_ms: int = 60000
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...
    validate_only: bool = False

    class FeatureUpdateKey(Struct):
        feature: str = ""
        max_version_level: int = 0
        allow_downgrade: bool = False
        upgrade_type: int = 1

class UpdateFeaturesRequestType(MessageType[UpdateFeaturesRequest]):
    __call__: type[UpdateFeaturesRequest]
    FeatureUpdateKey = UpdateFeaturesRequest.FeatureUpdateKey

class UpdateFeaturesResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...

    class UpdatableFeatureResult(Struct):
        feature: str = ""
        error_code: int = 0
        error_message: str | None = ""

class UpdateFeaturesResponseType(MessageType[UpdateFeaturesResponse]):
    __call__: type[UpdateFeaturesResponse]
    UpdatableFeatureResult = UpdateFeaturesResponse.UpdatableFeatureResult

class UpdateFeaturesApi(Api[UpdateFeaturesRequest, UpdateFeaturesResponse]):
    request: UpdateFeaturesRequestType
    response: UpdateFeaturesResponseType
