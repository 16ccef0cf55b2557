# Written by `make stubs` from 59_fetch_snapshot.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class FetchSnapshotRequest(Struct):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[FetchSnapshotRequest.TopicSnapshot] = ...

    class TopicSnapshot(Struct):
        name: str = ""
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...

    class PartitionSnapshot(Struct):
        partition: int = 0
        current_leader_epoch: int = 0
        snapshot_id: FetchSnapshotRequest.SnapshotId = ...
        position: int = 0
        replica_directory_id: UUID = ...

    class SnapshotId(Struct):
        end_offset: int = 0
        epoch: int = 0

class FetchSnapshotRequestType(MessageType[FetchSnapshotRequest]):
    __call__: type[FetchSnapshotRequest]
    TopicSnapshot = FetchSnapshotRequest.TopicSnapshot
    PartitionSnapshot = FetchSnapshotRequest.PartitionSnapshot
    SnapshotId = FetchSnapshotRequest.SnapshotId

class FetchSnapshotResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[FetchSnapshotResponse.TopicSnapshot] = ...
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...

    class TopicSnapshot(Struct):
        name: str = ""
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...

    class PartitionSnapshot(Struct):
        index: int = 0
        error_code: int = 0
        snapshot_id: FetchSnapshotResponse.SnapshotId = ...
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...
        size: int = 0
        position: int = 0
        unaligned_records: RecordData[Buffer] = ...

    class SnapshotId(Struct):
        end_offset: int = 0
        epoch: int = 0

    class LeaderIdAndEpoch(Struct):
        leader_id: int = 0
        leader_epoch: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0

class FetchSnapshotResponseType(MessageType[FetchSnapshotResponse]):
    __call__: type[FetchSnapshotResponse]
    TopicSnapshot = FetchSnapshotResponse.TopicSnapshot
    PartitionSnapshot = FetchSnapshotResponse.PartitionSnapshot
    SnapshotId = FetchSnapshotResponse.SnapshotId
    LeaderIdAndEpoch = FetchSnapshotResponse.LeaderIdAndEpoch
    NodeEndpoint = FetchSnapshotResponse.NodeEndpoint

class FetchSnapshotApi(Api[FetchSnapshotRequest, FetchSnapshotResponse]):
    request: FetchSnapshotRequestType
    response: FetchSnapshotResponseType
