# Written by `make stubs` from 79_share_acknowledge.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ShareAcknowledgeRequest(Struct):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ...

    class AcknowledgeTopic(Struct):
        topic_id: UUID = ...
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...

    class AcknowledgePartition(Struct):
        partition_index: int = 0
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...

    class AcknowledgementBatch(Struct):
        first_offset: int = 0
        last_offset: int = 0
        acknowledge_types: list[int] = ...

class ShareAcknowledgeRequestType(MessageType[ShareAcknowledgeRequest]):
    __call__: type[ShareAcknowledgeRequest]
    AcknowledgeTopic = ShareAcknowledgeRequest.AcknowledgeTopic
    AcknowledgePartition = ShareAcknowledgeRequest.AcknowledgePartition
    AcknowledgementBatch = ShareAcknowledgeRequest.AcknowledgementBatch

class ShareAcknowledgeResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ...

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: UUID = ...
        partitions: list[ShareAcknowledgeResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int = 0
        leader_epoch: int = 0

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

class ShareAcknowledgeResponseType(MessageType[ShareAcknowledgeResponse]):
    __call__: type[ShareAcknowledgeResponse]
    ShareAcknowledgeTopicResponse = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
    PartitionData = ShareAcknowledgeResponse.PartitionData
    LeaderIdAndEpoch = ShareAcknowledgeResponse.LeaderIdAndEpoch
    NodeEndpoint = ShareAcknowledgeResponse.NodeEndpoint

class ShareAcknowledgeApi(Api[ShareAcknowledgeRequest, ShareAcknowledgeResponse]):
    request: ShareAcknowledgeRequestType
    response: ShareAcknowledgeResponseType
