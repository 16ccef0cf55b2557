# Written by `make stubs` from 70_controller_registration.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ControllerRegistrationRequest(Struct):
    controller_id: int = 0
    incarnation_id: UUID = ...
    zk_migration_ready: bool = False
    listeners: list[ControllerRegistrationRequest.Listener] = ...
    features: list[ControllerRegistrationRequest.Feature] = ...

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: int = 0
        security_protocol: int = 0

    class Feature(Struct):
        name: str = ""
        min_supported_version: int = 0
        max_supported_version: int = 0

class ControllerRegistrationRequestType(MessageType[ControllerRegistrationRequest]):
    __call__: type[ControllerRegistrationRequest]
    Listener = ControllerRegistrationRequest.Listener
    Feature = ControllerRegistrationRequest.Feature

class ControllerRegistrationResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

class ControllerRegistrationResponseType(MessageType[ControllerRegistrationResponse]):
    __call__: type[ControllerRegistrationResponse]

class ControllerRegistrationApi(Api[ControllerRegistrationRequest, ControllerRegistrationResponse]):
    request: ControllerRegistrationRequestType
    response: ControllerRegistrationResponseType
