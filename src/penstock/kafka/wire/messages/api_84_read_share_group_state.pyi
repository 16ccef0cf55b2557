# Written by `make stubs` from 84_read_share_group_state.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ReadShareGroupStateRequest(Struct):
    group_id: str = ""
    topics: list[ReadShareGroupStateRequest.ReadStateData] = ...

    class ReadStateData(Struct):
        topic_id: UUID = ...
        partitions: list[ReadShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = 0
        leader_epoch: int = 0

class ReadShareGroupStateRequestType(MessageType[ReadShareGroupStateRequest]):
    __call__: type[ReadShareGroupStateRequest]
    ReadStateData = ReadShareGroupStateRequest.ReadStateData
    PartitionData = ReadShareGroupStateRequest.PartitionData

class ReadShareGroupStateResponse(Struct):
    results: list[ReadShareGroupStateResponse.ReadStateResult] = ...

    class ReadStateResult(Struct):
        topic_id: UUID = ...
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None
        state_epoch: int = 0
        start_offset: int = 0
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...

    class StateBatch(Struct):
        first_offset: int = 0
        last_offset: int = 0
        delivery_state: int = 0
        delivery_count: int = 0

class ReadShareGroupStateResponseType(MessageType[ReadShareGroupStateResponse]):
    __call__: type[ReadShareGroupStateResponse]
    ReadStateResult = ReadShareGroupStateResponse.ReadStateResult
    PartitionResult = ReadShareGroupStateResponse.PartitionResult
    StateBatch = ReadShareGroupStateResponse.StateBatch

class ReadShareGroupStateApi(Api[ReadShareGroupStateRequest, ReadShareGroupStateResponse]):
    request: ReadShareGroupStateRequestType
    response: ReadShareGroupStateResponseType
