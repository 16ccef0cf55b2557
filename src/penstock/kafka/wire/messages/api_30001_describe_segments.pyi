# Written by `make stubs` from 30001_describe_segments.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeSegmentsRequest(Struct):
    topics: list[DescribeSegmentsRequest.TopicRequest] = ...

    class TopicRequest(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

class DescribeSegmentsRequestType(MessageType[DescribeSegmentsRequest]):
    __call__: type[DescribeSegmentsRequest]
    TopicRequest = DescribeSegmentsRequest.TopicRequest

class DescribeSegmentsResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[DescribeSegmentsResponse.TopicSegments] = ...

    class TopicSegments(Struct):
        name: str = ""
        partitions: list[DescribeSegmentsResponse.PartitionSegments] = ...

    class PartitionSegments(Struct):
        partition_index: int = 0
        error_code: int = 0
        start_offset: int = 0
        end_offset: int = 0
        segments: list[DescribeSegmentsResponse.StoredSegment] = ...

    class StoredSegment(Struct):
        base_offset: int = 0
        end_offset: int = 0
        size_bytes: int = 0

class DescribeSegmentsResponseType(MessageType[DescribeSegmentsResponse]):
    __call__: type[DescribeSegmentsResponse]
    TopicSegments = DescribeSegmentsResponse.TopicSegments
    PartitionSegments = DescribeSegmentsResponse.PartitionSegments
    StoredSegment = DescribeSegmentsResponse.StoredSegment

class DescribeSegmentsApi(Api[DescribeSegmentsRequest, DescribeSegmentsResponse]):
    request: DescribeSegmentsRequestType
    response: DescribeSegmentsResponseType
