# Written by `make stubs` from 78_share_fetch.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class ShareFetchRequest(Struct):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[ShareFetchRequest.FetchTopic] = ...
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ...

    class FetchTopic(Struct):
        topic_id: UUID = ...
        partitions: list[ShareFetchRequest.FetchPartition] = ...

    class FetchPartition(Struct):
        partition_index: int = 0
        partition_max_bytes: int = 0
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...

    class AcknowledgementBatch(Struct):
        first_offset: int = 0
        last_offset: int = 0
        acknowledge_types: list[int] = ...

    class ForgottenTopic(Struct):
        topic_id: UUID = ...
        partitions: list[int] = ...

class ShareFetchRequestType(MessageType[ShareFetchRequest]):
    __call__: type[ShareFetchRequest]
    FetchTopic = ShareFetchRequest.FetchTopic
    FetchPartition = ShareFetchRequest.FetchPartition
    AcknowledgementBatch = ShareFetchRequest.AcknowledgementBatch
    ForgottenTopic = ShareFetchRequest.ForgottenTopic

class ShareFetchResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ...
    node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...

    class ShareFetchableTopicResponse(Struct):
        topic_id: UUID = ...
        partitions: list[ShareFetchResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        acknowledge_error_code: int = 0
        acknowledge_error_message: str | None = None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...
        records: RecordData[Buffer | None] = ...
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int = 0
        leader_epoch: int = 0

    class AcquiredRecords(Struct):
        first_offset: int = 0
        last_offset: int = 0
        delivery_count: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

class ShareFetchResponseType(MessageType[ShareFetchResponse]):
    __call__: type[ShareFetchResponse]
    ShareFetchableTopicResponse = ShareFetchResponse.ShareFetchableTopicResponse
    PartitionData = ShareFetchResponse.PartitionData
    LeaderIdAndEpoch = ShareFetchResponse.LeaderIdAndEpoch
    AcquiredRecords = ShareFetchResponse.AcquiredRecords
    NodeEndpoint = ShareFetchResponse.NodeEndpoint

class ShareFetchApi(Api[ShareFetchRequest, ShareFetchResponse]):
    request: ShareFetchRequestType
    response: ShareFetchResponseType
