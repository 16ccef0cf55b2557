# Written by `make stubs` from 75_describe_topic_partitions.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeTopicPartitionsRequest(Struct):
    topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ...
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequest.Cursor | None = None

    class TopicRequest(Struct):
        name: str = ""

    class Cursor(Struct):
        topic_name: str = ""
        partition_index: int = 0

class DescribeTopicPartitionsRequestType(MessageType[DescribeTopicPartitionsRequest]):
    __call__: type[DescribeTopicPartitionsRequest]
    TopicRequest = DescribeTopicPartitionsRequest.TopicRequest
    Cursor = DescribeTopicPartitionsRequest.Cursor

class DescribeTopicPartitionsResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = 0
        name: str | None = ""
        topic_id: UUID = ...
        is_internal: bool = False
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...
        topic_authorized_operations: int = ...

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1
        replica_nodes: list[int] = ...
        isr_nodes: list[int] = ...
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
        offline_replicas: list[int] = ...

    class Cursor(Struct):
        topic_name: str = ""
        partition_index: int = 0

class DescribeTopicPartitionsResponseType(MessageType[DescribeTopicPartitionsResponse]):
    __call__: type[DescribeTopicPartitionsResponse]
    DescribeTopicPartitionsResponseTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    DescribeTopicPartitionsResponsePartition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
    Cursor = DescribeTopicPartitionsResponse.Cursor

class DescribeTopicPartitionsApi(Api[DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse]):
    request: DescribeTopicPartitionsRequestType
    response: DescribeTopicPartitionsResponseType
