# Written by `make stubs` from 12_heartbeat.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class HeartbeatRequest(Struct):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None

class HeartbeatRequestType(MessageType[HeartbeatRequest]):
    __call__: type[HeartbeatRequest]

class HeartbeatResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0

class HeartbeatResponseType(MessageType[HeartbeatResponse]):
    __call__: type[HeartbeatResponse]

class HeartbeatApi(Api[HeartbeatRequest, HeartbeatResponse]):
    request: HeartbeatRequestType
    response: HeartbeatResponseType
