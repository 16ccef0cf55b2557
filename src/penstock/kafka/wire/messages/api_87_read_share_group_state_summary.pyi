# Written by `make stubs` from 87_read_share_group_state_summary.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ReadShareGroupStateSummaryRequest(Struct):
    group_id: str = ""
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...

    class ReadStateSummaryData(Struct):
        topic_id: UUID = ...
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = 0
        leader_epoch: int = 0

class ReadShareGroupStateSummaryRequestType(MessageType[ReadShareGroupStateSummaryRequest]):
    __call__: type[ReadShareGroupStateSummaryRequest]
    ReadStateSummaryData = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
    PartitionData = ReadShareGroupStateSummaryRequest.PartitionData

class ReadShareGroupStateSummaryResponse(Struct):
    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...

    class ReadStateSummaryResult(Struct):
        topic_id: UUID = ...
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1

class ReadShareGroupStateSummaryResponseType(MessageType[ReadShareGroupStateSummaryResponse]):
    __call__: type[ReadShareGroupStateSummaryResponse]
    ReadStateSummaryResult = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
    PartitionResult = ReadShareGroupStateSummaryResponse.PartitionResult

class ReadShareGroupStateSummaryApi(Api[ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse]):
    request: ReadShareGroupStateSummaryRequestType
    response: ReadShareGroupStateSummaryResponseType
