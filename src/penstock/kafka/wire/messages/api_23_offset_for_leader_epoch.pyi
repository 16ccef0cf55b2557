# Written by `make stubs` from 23_offset_for_leader_epoch.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class OffsetForLeaderEpochRequest(Struct):
    replica_id: int = -2
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...

    class OffsetForLeaderTopic(Struct):
        topic: str = ""
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...

    class OffsetForLeaderPartition(Struct):
        partition: int = 0
        current_leader_epoch: int = -1
        leader_epoch: int = 0

class OffsetForLeaderEpochRequestType(MessageType[OffsetForLeaderEpochRequest]):
    __call__: type[OffsetForLeaderEpochRequest]
    OffsetForLeaderTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    OffsetForLeaderPartition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition

class OffsetForLeaderEpochResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...

    class OffsetForLeaderTopicResult(Struct):
        topic: str = ""
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...

    class EpochEndOffset(Struct):
        error_code: int = 0
        partition: int = 0
        leader_epoch: int = -1
        end_offset: int = -1

class OffsetForLeaderEpochResponseType(MessageType[OffsetForLeaderEpochResponse]):
    __call__: type[OffsetForLeaderEpochResponse]
    OffsetForLeaderTopicResult = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset

class OffsetForLeaderEpochApi(Api[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]):
    request: OffsetForLeaderEpochRequestType
    response: OffsetForLeaderEpochResponseType
