# Written by `make stubs` from 01_fetch.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class FetchRequest(Struct):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: FetchRequest.ReplicaState = ...
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchRequest.FetchTopic] = ...
    forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...
    rack_id: str = ""

    class ReplicaState(Struct):
        replica_id: int = -1
        replica_epoch: int = -1

    class FetchTopic(Struct):
        topic: str = ""
        topic_id: UUID = ...
        partitions: list[FetchRequest.FetchPartition] = ...

    class FetchPartition(Struct):
        partition: int = 0
        current_leader_epoch: int = -1
        fetch_offset: int = 0
        last_fetched_epoch: int = -1
        log_start_offset: int = -1
        partition_max_bytes: int = 0
        replica_directory_id: UUID = ...
        high_watermark: int = ...

    class ForgottenTopic(Struct):
        topic: str = ""
        topic_id: UUID = ...
        partitions: list[int] = ...

class FetchRequestType(MessageType[FetchRequest]):
    __call__: type[FetchRequest]
    ReplicaState = FetchRequest.ReplicaState
    FetchTopic = FetchRequest.FetchTopic
    FetchPartition = FetchRequest.FetchPartition
    ForgottenTopic = FetchRequest.ForgottenTopic

class FetchResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchResponse.FetchableTopicResponse] = ...
    node_endpoints: list[FetchResponse.NodeEndpoint] = ...

    class FetchableTopicResponse(Struct):
        topic: str = ""
        topic_id: UUID = ...
        partitions: list[FetchResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        high_watermark: int = 0
        last_stable_offset: int = -1
        log_start_offset: int = -1
        diverging_epoch: FetchResponse.EpochEndOffset = ...
        current_leader: FetchResponse.LeaderIdAndEpoch = ...
        snapshot_id: FetchResponse.SnapshotId = ...
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...
        preferred_read_replica: int = -1
        records: RecordData[Buffer | None] = ...

    class EpochEndOffset(Struct):
        epoch: int = -1
        end_offset: int = -1

    class LeaderIdAndEpoch(Struct):
        leader_id: int = -1
        leader_epoch: int = -1

    class SnapshotId(Struct):
        end_offset: int = -1
        epoch: int = -1

    class AbortedTransaction(Struct):
        producer_id: int = 0
        first_offset: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

class FetchResponseType(MessageType[FetchResponse]):
    __call__: type[FetchResponse]
    FetchableTopicResponse = FetchResponse.FetchableTopicResponse
    PartitionData = FetchResponse.PartitionData
    EpochEndOffset = FetchResponse.EpochEndOffset
    LeaderIdAndEpoch = FetchResponse.LeaderIdAndEpoch
    SnapshotId = FetchResponse.SnapshotId
    AbortedTransaction = FetchResponse.AbortedTransaction
    NodeEndpoint = FetchResponse.NodeEndpoint

class FetchApi(Api[FetchRequest, FetchResponse]):
    request: FetchRequestType
    response: FetchResponseType
