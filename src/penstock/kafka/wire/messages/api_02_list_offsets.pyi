# Written by `make stubs` from 02_list_offsets.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListOffsetsRequest(Struct):
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsRequest.ListOffsetsTopic] = ...
    timeout_ms: int = 0

    class ListOffsetsTopic(Struct):
        name: str = ""
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...

    class ListOffsetsPartition(Struct):
        partition_index: int = 0
        current_leader_epoch: int = -1
        timestamp: int = 0
        max_num_offsets: int = 1

class ListOffsetsRequestType(MessageType[ListOffsetsRequest]):
    __call__: type[ListOffsetsRequest]
    ListOffsetsTopic = ListOffsetsRequest.ListOffsetsTopic
    ListOffsetsPartition = ListOffsetsRequest.ListOffsetsPartition

class ListOffsetsResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ...

    class ListOffsetsTopicResponse(Struct):
        name: str = ""
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...

    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = 0
        error_code: int = 0
        old_style_offsets: list[int] = ...
        timestamp: int = -1
        offset: int = -1
        leader_epoch: int = -1

class ListOffsetsResponseType(MessageType[ListOffsetsResponse]):
    __call__: type[ListOffsetsResponse]
    ListOffsetsTopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
    ListOffsetsPartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse

class ListOffsetsApi(Api[ListOffsetsRequest, ListOffsetsResponse]):
    request: ListOffsetsRequestType
    response: ListOffsetsResponseType
