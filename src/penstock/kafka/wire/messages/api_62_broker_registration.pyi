# Written by `make stubs` from 62_broker_registration.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class BrokerRegistrationRequest(Struct):
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID = ...
    listeners: list[BrokerRegistrationRequest.Listener] = ...
    features: list[BrokerRegistrationRequest.Feature] = ...
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: list[UUID] = ...
    previous_broker_epoch: int = -1

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: int = 0
        security_protocol: int = 0

    class Feature(Struct):
        name: str = ""
        min_supported_version: int = 0
        max_supported_version: int = 0

class BrokerRegistrationRequestType(MessageType[BrokerRegistrationRequest]):
    __call__: type[BrokerRegistrationRequest]
    Listener = BrokerRegistrationRequest.Listener
    Feature = BrokerRegistrationRequest.Feature

class BrokerRegistrationResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1

class BrokerRegistrationResponseType(MessageType[BrokerRegistrationResponse]):
    __call__: type[BrokerRegistrationResponse]

class BrokerRegistrationApi(Api[BrokerRegistrationRequest, BrokerRegistrationResponse]):
    request: BrokerRegistrationRequestType
    response: BrokerRegistrationResponseType
