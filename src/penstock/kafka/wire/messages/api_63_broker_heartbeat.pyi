# Written by `make stubs` from 63_broker_heartbeat.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class BrokerHeartbeatRequest(Struct):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[UUID] = ...
    cordoned_log_dirs: list[UUID] | None = None

class BrokerHeartbeatRequestType(MessageType[BrokerHeartbeatRequest]):
    __call__: type[BrokerHeartbeatRequest]

class BrokerHeartbeatResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False

class BrokerHeartbeatResponseType(MessageType[BrokerHeartbeatResponse]):
    __call__: type[BrokerHeartbeatResponse]

class BrokerHeartbeatApi(Api[BrokerHeartbeatRequest, BrokerHeartbeatResponse]):
    request: BrokerHeartbeatRequestType
    response: BrokerHeartbeatResponseType
