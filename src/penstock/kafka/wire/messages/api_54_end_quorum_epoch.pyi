# Written by `make stubs` from 54_end_quorum_epoch.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class EndQuorumEpochRequest(Struct):
    cluster_id: str | None = None
    topics: list[EndQuorumEpochRequest.TopicData] = ...
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[EndQuorumEpochRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = 0
        preferred_successors: list[int] = ...
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...

    class ReplicaInfo(Struct):
        candidate_id: int = 0
        candidate_directory_id: UUID = ...

    class LeaderEndpoint(Struct):
        name: str = ""
        host: str = ""
        port: int = 0

class EndQuorumEpochRequestType(MessageType[EndQuorumEpochRequest]):
    __call__: type[EndQuorumEpochRequest]
    TopicData = EndQuorumEpochRequest.TopicData
    PartitionData = EndQuorumEpochRequest.PartitionData
    ReplicaInfo = EndQuorumEpochRequest.ReplicaInfo
    LeaderEndpoint = EndQuorumEpochRequest.LeaderEndpoint

class EndQuorumEpochResponse(Struct):
    error_code: int = 0
    topics: list[EndQuorumEpochResponse.TopicData] = ...
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[EndQuorumEpochResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        leader_id: int = 0
        leader_epoch: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0

class EndQuorumEpochResponseType(MessageType[EndQuorumEpochResponse]):
    __call__: type[EndQuorumEpochResponse]
    TopicData = EndQuorumEpochResponse.TopicData
    PartitionData = EndQuorumEpochResponse.PartitionData
    NodeEndpoint = EndQuorumEpochResponse.NodeEndpoint

class EndQuorumEpochApi(Api[EndQuorumEpochRequest, EndQuorumEpochResponse]):
    request: EndQuorumEpochRequestType
    response: EndQuorumEpochResponseType
