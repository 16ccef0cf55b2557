# Written by `make stubs` from 55_describe_quorum.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeQuorumRequest(Struct):
    topics: list[DescribeQuorumRequest.TopicData] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[DescribeQuorumRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0

class DescribeQuorumRequestType(MessageType[DescribeQuorumRequest]):
    __call__: type[DescribeQuorumRequest]
    TopicData = DescribeQuorumRequest.TopicData
    PartitionData = DescribeQuorumRequest.PartitionData

class DescribeQuorumResponse(Struct):
    error_code: int = 0
    error_message: str | None = ""
    topics: list[DescribeQuorumResponse.TopicData] = ...
    nodes: list[DescribeQuorumResponse.Node] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[DescribeQuorumResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = ""
        leader_id: int = 0
        leader_epoch: int = 0
        high_watermark: int = 0
        current_voters: list[DescribeQuorumResponse.ReplicaState] = ...
        observers: list[DescribeQuorumResponse.ReplicaState] = ...

    class ReplicaState(Struct):
        replica_id: int = 0
        replica_directory_id: UUID = ...
        log_end_offset: int = 0
        last_fetch_timestamp: int = -1
        last_caught_up_timestamp: int = -1

    class Node(Struct):
        node_id: int = 0
        listeners: list[DescribeQuorumResponse.Listener] = ...

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: int = 0

class DescribeQuorumResponseType(MessageType[DescribeQuorumResponse]):
    __call__: type[DescribeQuorumResponse]
    TopicData = DescribeQuorumResponse.TopicData
    PartitionData = DescribeQuorumResponse.PartitionData
    ReplicaState = DescribeQuorumResponse.ReplicaState
    Node = DescribeQuorumResponse.Node
    Listener = DescribeQuorumResponse.Listener

class DescribeQuorumApi(Api[DescribeQuorumRequest, DescribeQuorumResponse]):
    request: DescribeQuorumRequestType
    response: DescribeQuorumResponseType
