# Written by `make stubs` from 14_sync_group.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class SyncGroupRequest(Struct):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ...

    class SyncGroupRequestAssignment(Struct):
        member_id: str = ""
        assignment: bytes = ...

class SyncGroupRequestType(MessageType[SyncGroupRequest]):
    __call__: type[SyncGroupRequest]
    SyncGroupRequestAssignment = SyncGroupRequest.SyncGroupRequestAssignment

class SyncGroupResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = ...

class SyncGroupResponseType(MessageType[SyncGroupResponse]):
    __call__: type[SyncGroupResponse]

class SyncGroupApi(Api[SyncGroupRequest, SyncGroupResponse]):
    request: SyncGroupRequestType
    response: SyncGroupResponseType
