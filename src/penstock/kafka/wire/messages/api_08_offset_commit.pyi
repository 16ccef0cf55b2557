# Written by `make stubs` from 08_offset_commit.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class OffsetCommitRequest(Struct):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ...

    class OffsetCommitRequestTopic(Struct):
        name: str = ""
        topic_id: UUID = ...
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ...

    class OffsetCommitRequestPartition(Struct):
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        commit_timestamp: int = -1
        committed_metadata: str | None = ""

class OffsetCommitRequestType(MessageType[OffsetCommitRequest]):
    __call__: type[OffsetCommitRequest]
    OffsetCommitRequestTopic = OffsetCommitRequest.OffsetCommitRequestTopic
    OffsetCommitRequestPartition = OffsetCommitRequest.OffsetCommitRequestPartition

class OffsetCommitResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ...

    class OffsetCommitResponseTopic(Struct):
        name: str = ""
        topic_id: UUID = ...
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ...

    class OffsetCommitResponsePartition(Struct):
        partition_index: int = 0
        error_code: int = 0

class OffsetCommitResponseType(MessageType[OffsetCommitResponse]):
    __call__: type[OffsetCommitResponse]
    OffsetCommitResponseTopic = OffsetCommitResponse.OffsetCommitResponseTopic
    OffsetCommitResponsePartition = OffsetCommitResponse.OffsetCommitResponsePartition

class OffsetCommitApi(Api[OffsetCommitRequest, OffsetCommitResponse]):
    request: OffsetCommitRequestType
    response: OffsetCommitResponseType
