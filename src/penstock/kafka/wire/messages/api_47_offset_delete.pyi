# Written by `make stubs` from 47_offset_delete.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class OffsetDeleteRequest(Struct):
    group_id: str = ""
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...

    class OffsetDeleteRequestTopic(Struct):
        name: str = ""
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = 0

class OffsetDeleteRequestType(MessageType[OffsetDeleteRequest]):
    __call__: type[OffsetDeleteRequest]
    OffsetDeleteRequestTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    OffsetDeleteRequestPartition = OffsetDeleteRequest.OffsetDeleteRequestPartition

class OffsetDeleteResponse(Struct):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...

    class OffsetDeleteResponseTopic(Struct):
        name: str = ""
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...

    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = 0
        error_code: int = 0

class OffsetDeleteResponseType(MessageType[OffsetDeleteResponse]):
    __call__: type[OffsetDeleteResponse]
    OffsetDeleteResponseTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
    OffsetDeleteResponsePartition = OffsetDeleteResponse.OffsetDeleteResponsePartition

class OffsetDeleteApi(Api[OffsetDeleteRequest, OffsetDeleteResponse]):
    request: OffsetDeleteRequestType
    response: OffsetDeleteResponseType
