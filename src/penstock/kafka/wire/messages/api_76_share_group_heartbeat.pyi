# Written by `make stubs` from 76_share_group_heartbeat.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ShareGroupHeartbeatRequest(Struct):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None

class ShareGroupHeartbeatRequestType(MessageType[ShareGroupHeartbeatRequest]):
    __call__: type[ShareGroupHeartbeatRequest]

class ShareGroupHeartbeatResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ShareGroupHeartbeatResponse.Assignment | None = None

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: UUID = ...
        partitions: list[int] = ...

class ShareGroupHeartbeatResponseType(MessageType[ShareGroupHeartbeatResponse]):
    __call__: type[ShareGroupHeartbeatResponse]
    Assignment = ShareGroupHeartbeatResponse.Assignment
    TopicPartitions = ShareGroupHeartbeatResponse.TopicPartitions

class ShareGroupHeartbeatApi(Api[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse]):
    request: ShareGroupHeartbeatRequestType
    response: ShareGroupHeartbeatResponseType
