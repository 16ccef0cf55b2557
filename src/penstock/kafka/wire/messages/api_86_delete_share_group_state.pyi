# Written by `make stubs` from 86_delete_share_group_state.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteShareGroupStateRequest(Struct):
    group_id: str = ""
    topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...

    class DeleteStateData(Struct):
        topic_id: UUID = ...
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = 0

class DeleteShareGroupStateRequestType(MessageType[DeleteShareGroupStateRequest]):
    __call__: type[DeleteShareGroupStateRequest]
    DeleteStateData = DeleteShareGroupStateRequest.DeleteStateData
    PartitionData = DeleteShareGroupStateRequest.PartitionData

class DeleteShareGroupStateResponse(Struct):
    results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...

    class DeleteStateResult(Struct):
        topic_id: UUID = ...
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None

class DeleteShareGroupStateResponseType(MessageType[DeleteShareGroupStateResponse]):
    __call__: type[DeleteShareGroupStateResponse]
    DeleteStateResult = DeleteShareGroupStateResponse.DeleteStateResult
    PartitionResult = DeleteShareGroupStateResponse.PartitionResult

class DeleteShareGroupStateApi(Api[DeleteShareGroupStateRequest, DeleteShareGroupStateResponse]):
    request: DeleteShareGroupStateRequestType
    response: DeleteShareGroupStateResponseType
