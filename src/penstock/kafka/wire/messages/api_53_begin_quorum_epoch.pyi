# Written by `make stubs` from 53_begin_quorum_epoch.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class BeginQuorumEpochRequest(Struct):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[BeginQuorumEpochRequest.TopicData] = ...
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[BeginQuorumEpochRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        voter_directory_id: UUID = ...
        leader_id: int = 0
        leader_epoch: int = 0

    class LeaderEndpoint(Struct):
        name: str = ""
        host: str = ""
        port: int = 0

class BeginQuorumEpochRequestType(MessageType[BeginQuorumEpochRequest]):
    __call__: type[BeginQuorumEpochRequest]
    TopicData = BeginQuorumEpochRequest.TopicData
    PartitionData = BeginQuorumEpochRequest.PartitionData
    LeaderEndpoint = BeginQuorumEpochRequest.LeaderEndpoint

class BeginQuorumEpochResponse(Struct):
    error_code: int = 0
    topics: list[BeginQuorumEpochResponse.TopicData] = ...
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[BeginQuorumEpochResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        leader_id: int = 0
        leader_epoch: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0

class BeginQuorumEpochResponseType(MessageType[BeginQuorumEpochResponse]):
    __call__: type[BeginQuorumEpochResponse]
    TopicData = BeginQuorumEpochResponse.TopicData
    PartitionData = BeginQuorumEpochResponse.PartitionData
    NodeEndpoint = BeginQuorumEpochResponse.NodeEndpoint

class BeginQuorumEpochApi(Api[BeginQuorumEpochRequest, BeginQuorumEpochResponse]):
    request: BeginQuorumEpochRequestType
    response: BeginQuorumEpochResponseType
