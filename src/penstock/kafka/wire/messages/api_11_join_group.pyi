# Written by `make stubs` from 11_join_group.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class JoinGroupRequest(Struct):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ...
    reason: str | None = None

    class JoinGroupRequestProtocol(Struct):
        name: str = ""
        metadata: bytes = ...

class JoinGroupRequestType(MessageType[JoinGroupRequest]):
    __call__: type[JoinGroupRequest]
    JoinGroupRequestProtocol = JoinGroupRequest.JoinGroupRequestProtocol

class JoinGroupResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponse.JoinGroupResponseMember] = ...

    class JoinGroupResponseMember(Struct):
        member_id: str = ""
        group_instance_id: str | None = None
        metadata: bytes = ...

class JoinGroupResponseType(MessageType[JoinGroupResponse]):
    __call__: type[JoinGroupResponse]
    JoinGroupResponseMember = JoinGroupResponse.JoinGroupResponseMember

class JoinGroupApi(Api[JoinGroupRequest, JoinGroupResponse]):
    request: JoinGroupRequestType
    response: JoinGroupResponseType
