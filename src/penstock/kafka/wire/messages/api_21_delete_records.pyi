# Written by `make stubs` from 21_delete_records.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteRecordsRequest(Struct):
    topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ...
    timeout_ms: int = 0

    class DeleteRecordsTopic(Struct):
        name: str = ""
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...

    class DeleteRecordsPartition(Struct):
        partition_index: int = 0
        offset: int = 0

class DeleteRecordsRequestType(MessageType[DeleteRecordsRequest]):
    __call__: type[DeleteRecordsRequest]
    DeleteRecordsTopic = DeleteRecordsRequest.DeleteRecordsTopic
    DeleteRecordsPartition = DeleteRecordsRequest.DeleteRecordsPartition

class DeleteRecordsResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...

    class DeleteRecordsTopicResult(Struct):
        name: str = ""
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...

    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = 0
        low_watermark: int = 0
        error_code: int = 0

class DeleteRecordsResponseType(MessageType[DeleteRecordsResponse]):
    __call__: type[DeleteRecordsResponse]
    DeleteRecordsTopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
    DeleteRecordsPartitionResult = DeleteRecordsResponse.DeleteRecordsPartitionResult

class DeleteRecordsApi(Api[DeleteRecordsRequest, DeleteRecordsResponse]):
    request: DeleteRecordsRequestType
    response: DeleteRecordsResponseType
