# Written by `make stubs` from 83_initialize_share_group_state.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class InitializeShareGroupStateRequest(Struct):
    group_id: str = ""
    topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...

    class InitializeStateData(Struct):
        topic_id: UUID = ...
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = 0
        state_epoch: int = 0
        start_offset: int = 0

class InitializeShareGroupStateRequestType(MessageType[InitializeShareGroupStateRequest]):
    __call__: type[InitializeShareGroupStateRequest]
    InitializeStateData = InitializeShareGroupStateRequest.InitializeStateData
    PartitionData = InitializeShareGroupStateRequest.PartitionData

class InitializeShareGroupStateResponse(Struct):
    results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...

    class InitializeStateResult(Struct):
        topic_id: UUID = ...
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None

class InitializeShareGroupStateResponseType(MessageType[InitializeShareGroupStateResponse]):
    __call__: type[InitializeShareGroupStateResponse]
    InitializeStateResult = InitializeShareGroupStateResponse.InitializeStateResult
    PartitionResult = InitializeShareGroupStateResponse.PartitionResult

class InitializeShareGroupStateApi(Api[InitializeShareGroupStateRequest, InitializeShareGroupStateResponse]):
    request: InitializeShareGroupStateRequestType
    response: InitializeShareGroupStateResponseType
