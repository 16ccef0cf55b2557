# Written by `make stubs` from 13_leave_group.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class LeaveGroupRequest(Struct):
    group_id: str = ""
    member_id: str = ""
    members: list[LeaveGroupRequest.MemberIdentity] = ...

    class MemberIdentity(Struct):
        member_id: str = ""
        group_instance_id: str | None = None
        reason: str | None = None

class LeaveGroupRequestType(MessageType[LeaveGroupRequest]):
    __call__: type[LeaveGroupRequest]
    MemberIdentity = LeaveGroupRequest.MemberIdentity

class LeaveGroupResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[LeaveGroupResponse.MemberResponse] = ...

    class MemberResponse(Struct):
        member_id: str = ""
        group_instance_id: str | None = ""
        error_code: int = 0

class LeaveGroupResponseType(MessageType[LeaveGroupResponse]):
    __call__: type[LeaveGroupResponse]
    MemberResponse = LeaveGroupResponse.MemberResponse

class LeaveGroupApi(Api[LeaveGroupRequest, LeaveGroupResponse]):
    request: LeaveGroupRequestType
    response: LeaveGroupResponseType
