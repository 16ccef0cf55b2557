# Written by `make stubs` from 68_consumer_group_heartbeat.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ConsumerGroupHeartbeatRequest(Struct):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None

    class TopicPartitions(Struct):
        topic_id: UUID = ...
        partitions: list[int] = ...

class ConsumerGroupHeartbeatRequestType(MessageType[ConsumerGroupHeartbeatRequest]):
    __call__: type[ConsumerGroupHeartbeatRequest]
    TopicPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions

class ConsumerGroupHeartbeatResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: UUID = ...
        partitions: list[int] = ...

class ConsumerGroupHeartbeatResponseType(MessageType[ConsumerGroupHeartbeatResponse]):
    __call__: type[ConsumerGroupHeartbeatResponse]
    Assignment = ConsumerGroupHeartbeatResponse.Assignment
    TopicPartitions = ConsumerGroupHeartbeatResponse.TopicPartitions

class ConsumerGroupHeartbeatApi(Api[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse]):
    request: ConsumerGroupHeartbeatRequestType
    response: ConsumerGroupHeartbeatResponseType
