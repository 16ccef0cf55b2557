# Written by `make stubs` from 35_describe_log_dirs.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeLogDirsRequest(Struct):
    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...

    class DescribableLogDirTopic(Struct):
        topic: str = ""
        partitions: list[int] = ...

class DescribeLogDirsRequestType(MessageType[DescribeLogDirsRequest]):
    __call__: type[DescribeLogDirsRequest]
    DescribableLogDirTopic = DescribeLogDirsRequest.DescribableLogDirTopic

class DescribeLogDirsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ...

    class DescribeLogDirsResult(Struct):
        error_code: int = 0
        log_dir: str = ""
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...
        total_bytes: int = -1
        usable_bytes: int = -1
        is_cordoned: bool = False

    class DescribeLogDirsTopic(Struct):
        name: str = ""
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...

    class DescribeLogDirsPartition(Struct):
        partition_index: int = 0
        partition_size: int = 0
        offset_lag: int = 0
        is_future_key: bool = False

class DescribeLogDirsResponseType(MessageType[DescribeLogDirsResponse]):
    __call__: type[DescribeLogDirsResponse]
    DescribeLogDirsResult = DescribeLogDirsResponse.DescribeLogDirsResult
    DescribeLogDirsTopic = DescribeLogDirsResponse.DescribeLogDirsTopic
    DescribeLogDirsPartition = DescribeLogDirsResponse.DescribeLogDirsPartition

class DescribeLogDirsApi(Api[DescribeLogDirsRequest, DescribeLogDirsResponse]):
    request: DescribeLogDirsRequestType
    response: DescribeLogDirsResponseType
