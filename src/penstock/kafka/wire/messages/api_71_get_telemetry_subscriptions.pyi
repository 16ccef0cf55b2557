# Written by `make stubs` from 71_get_telemetry_subscriptions.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class GetTelemetrySubscriptionsRequest(Struct):
    client_instance_id: UUID = ...

class GetTelemetrySubscriptionsRequestType(MessageType[GetTelemetrySubscriptionsRequest]):
    __call__: type[GetTelemetrySubscriptionsRequest]

class GetTelemetrySubscriptionsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = ...
    subscription_id: int = 0
    accepted_compression_types: list[int] = ...
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = ...

class GetTelemetrySubscriptionsResponseType(MessageType[GetTelemetrySubscriptionsResponse]):
    __call__: type[GetTelemetrySubscriptionsResponse]

class GetTelemetrySubscriptionsApi(Api[GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse]):
    request: GetTelemetrySubscriptionsRequestType
    response: GetTelemetrySubscriptionsResponseType
