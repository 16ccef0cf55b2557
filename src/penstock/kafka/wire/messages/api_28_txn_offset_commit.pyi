# Written by `make stubs` from 28_txn_offset_commit.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class TxnOffsetCommitRequest(Struct):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = ""
        topic_id: UUID = ...
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        committed_metadata: str | None = ""

class TxnOffsetCommitRequestType(MessageType[TxnOffsetCommitRequest]):
    __call__: type[TxnOffsetCommitRequest]
    TxnOffsetCommitRequestTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    TxnOffsetCommitRequestPartition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition

class TxnOffsetCommitResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = ""
        topic_id: UUID = ...
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...

    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = 0
        error_code: int = 0

class TxnOffsetCommitResponseType(MessageType[TxnOffsetCommitResponse]):
    __call__: type[TxnOffsetCommitResponse]
    TxnOffsetCommitResponseTopic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    TxnOffsetCommitResponsePartition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition

class TxnOffsetCommitApi(Api[TxnOffsetCommitRequest, TxnOffsetCommitResponse]):
    request: TxnOffsetCommitRequestType
    response: TxnOffsetCommitResponseType
