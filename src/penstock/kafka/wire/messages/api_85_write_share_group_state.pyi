# Written by `make stubs` from 85_write_share_group_state.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class WriteShareGroupStateRequest(Struct):
    group_id: str = ""
    topics: list[WriteShareGroupStateRequest.WriteStateData] = ...

    class WriteStateData(Struct):
        topic_id: UUID = ...
        partitions: list[WriteShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = 0
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = ...

    class StateBatch(Struct):
        first_offset: int = 0
        last_offset: int = 0
        delivery_state: int = 0
        delivery_count: int = 0

class WriteShareGroupStateRequestType(MessageType[WriteShareGroupStateRequest]):
    __call__: type[WriteShareGroupStateRequest]
    WriteStateData = WriteShareGroupStateRequest.WriteStateData
    PartitionData = WriteShareGroupStateRequest.PartitionData
    StateBatch = WriteShareGroupStateRequest.StateBatch

class WriteShareGroupStateResponse(Struct):
    results: list[WriteShareGroupStateResponse.WriteStateResult] = ...

    class WriteStateResult(Struct):
        topic_id: UUID = ...
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None

class WriteShareGroupStateResponseType(MessageType[WriteShareGroupStateResponse]):
    __call__: type[WriteShareGroupStateResponse]
    WriteStateResult = WriteShareGroupStateResponse.WriteStateResult
    PartitionResult = WriteShareGroupStateResponse.PartitionResult

class WriteShareGroupStateApi(Api[WriteShareGroupStateRequest, WriteShareGroupStateResponse]):
    request: WriteShareGroupStateRequestType
    response: WriteShareGroupStateResponseType
