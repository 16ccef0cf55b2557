# Written by `make stubs` from 72_push_telemetry.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class PushTelemetryRequest(Struct):
    client_instance_id: UUID = ...
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = ...

class PushTelemetryRequestType(MessageType[PushTelemetryRequest]):
    __call__: type[PushTelemetryRequest]

class PushTelemetryResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0

class PushTelemetryResponseType(MessageType[PushTelemetryResponse]):
    __call__: type[PushTelemetryResponse]

class PushTelemetryApi(Api[PushTelemetryRequest, PushTelemetryResponse]):
    request: PushTelemetryRequestType
    response: PushTelemetryResponseType
