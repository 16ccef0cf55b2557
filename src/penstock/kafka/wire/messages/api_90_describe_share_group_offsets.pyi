# Written by `make stubs` from 90_describe_share_group_offsets.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeShareGroupOffsetsRequest(Struct):
    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""
        partitions: list[int] = ...

class DescribeShareGroupOffsetsRequestType(MessageType[DescribeShareGroupOffsetsRequest]):
    __call__: type[DescribeShareGroupOffsetsRequest]
    DescribeShareGroupOffsetsRequestGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    DescribeShareGroupOffsetsRequestTopic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic

class DescribeShareGroupOffsetsResponse(Struct):
    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...
        error_code: int = 0
        error_message: str | None = None

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = 0
        start_offset: int = 0
        leader_epoch: int = 0
        lag: int = -1
        error_code: int = 0
        error_message: str | None = None

class DescribeShareGroupOffsetsResponseType(MessageType[DescribeShareGroupOffsetsResponse]):
    __call__: type[DescribeShareGroupOffsetsResponse]
    DescribeShareGroupOffsetsResponseGroup = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    DescribeShareGroupOffsetsResponseTopic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
    DescribeShareGroupOffsetsResponsePartition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition

class DescribeShareGroupOffsetsApi(Api[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse]):
    request: DescribeShareGroupOffsetsRequestType
    response: DescribeShareGroupOffsetsResponseType
