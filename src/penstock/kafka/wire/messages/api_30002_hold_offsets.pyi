# Written by `make stubs` from 30002_hold_offsets.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class HoldOffsetsRequest(Struct):
    holder: str = ""
    seconds: int = 0
    topics: list[HoldOffsetsRequest.TopicOffsets] = ...

    class TopicOffsets(Struct):
        name: str = ""
        partitions: list[HoldOffsetsRequest.PartitionOffset] = ...

    class PartitionOffset(Struct):
        partition_index: int = 0
        offset: int = 0

class HoldOffsetsRequestType(MessageType[HoldOffsetsRequest]):
    __call__: type[HoldOffsetsRequest]
    TopicOffsets = HoldOffsetsRequest.TopicOffsets
    PartitionOffset = HoldOffsetsRequest.PartitionOffset

class HoldOffsetsResponse(Struct):
    throttle_time_ms: int = 0
    seconds: int = 0
    topics: list[HoldOffsetsResponse.HeldTopic] = ...

    class HeldTopic(Struct):
        name: str = ""
        partitions: list[HoldOffsetsResponse.HeldPartition] = ...

    class HeldPartition(Struct):
        partition_index: int = 0
        error_code: int = 0

class HoldOffsetsResponseType(MessageType[HoldOffsetsResponse]):
    __call__: type[HoldOffsetsResponse]
    HeldTopic = HoldOffsetsResponse.HeldTopic
    HeldPartition = HoldOffsetsResponse.HeldPartition

class HoldOffsetsApi(Api[HoldOffsetsRequest, HoldOffsetsResponse]):
    request: HoldOffsetsRequestType
    response: HoldOffsetsResponseType
