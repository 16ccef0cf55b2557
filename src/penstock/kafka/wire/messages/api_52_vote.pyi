# Written by `make stubs` from 52_vote.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class VoteRequest(Struct):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[VoteRequest.TopicData] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[VoteRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        replica_epoch: int = 0
        replica_id: int = 0
        replica_directory_id: UUID = ...
        voter_directory_id: UUID = ...
        last_offset_epoch: int = 0
        last_offset: int = 0
        pre_vote: bool = False

class VoteRequestType(MessageType[VoteRequest]):
    __call__: type[VoteRequest]
    TopicData = VoteRequest.TopicData
    PartitionData = VoteRequest.PartitionData

class VoteResponse(Struct):
    error_code: int = 0
    topics: list[VoteResponse.TopicData] = ...
    node_endpoints: list[VoteResponse.NodeEndpoint] = ...

    class TopicData(Struct):
        topic_name: str = ""
        partitions: list[VoteResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        leader_id: int = 0
        leader_epoch: int = 0
        vote_granted: bool = False

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0

class VoteResponseType(MessageType[VoteResponse]):
    __call__: type[VoteResponse]
    TopicData = VoteResponse.TopicData
    PartitionData = VoteResponse.PartitionData
    NodeEndpoint = VoteResponse.NodeEndpoint

class VoteApi(Api[VoteRequest, VoteResponse]):
    request: VoteRequestType
    response: VoteResponseType
