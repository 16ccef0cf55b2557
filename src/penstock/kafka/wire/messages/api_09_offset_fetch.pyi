# Written by `make stubs` from 09_offset_fetch.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class OffsetFetchRequest(Struct):
    group_id: str = ""
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...
    require_stable: bool = False

    class OffsetFetchRequestTopic(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

    class OffsetFetchRequestGroup(Struct):
        group_id: str = ""
        member_id: str | None = None
        member_epoch: int = -1
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...

    class OffsetFetchRequestTopics(Struct):
        name: str = ""
        topic_id: UUID = ...
        partition_indexes: list[int] = ...

class OffsetFetchRequestType(MessageType[OffsetFetchRequest]):
    __call__: type[OffsetFetchRequest]
    OffsetFetchRequestTopic = OffsetFetchRequest.OffsetFetchRequestTopic
    OffsetFetchRequestGroup = OffsetFetchRequest.OffsetFetchRequestGroup
    OffsetFetchRequestTopics = OffsetFetchRequest.OffsetFetchRequestTopics

class OffsetFetchResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...
    error_code: int = 0
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...

    class OffsetFetchResponseTopic(Struct):
        name: str = ""
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...

    class OffsetFetchResponsePartition(Struct):
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        metadata: str | None = ""
        error_code: int = 0

    class OffsetFetchResponseGroup(Struct):
        group_id: str = ""
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...
        error_code: int = 0

    class OffsetFetchResponseTopics(Struct):
        name: str = ""
        topic_id: UUID = ...
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        metadata: str | None = ""
        error_code: int = 0

class OffsetFetchResponseType(MessageType[OffsetFetchResponse]):
    __call__: type[OffsetFetchResponse]
    OffsetFetchResponseTopic = OffsetFetchResponse.OffsetFetchResponseTopic
    OffsetFetchResponsePartition = OffsetFetchResponse.OffsetFetchResponsePartition
    OffsetFetchResponseGroup = OffsetFetchResponse.OffsetFetchResponseGroup
    OffsetFetchResponseTopics = OffsetFetchResponse.OffsetFetchResponseTopics
    OffsetFetchResponsePartitions = OffsetFetchResponse.OffsetFetchResponsePartitions

class OffsetFetchApi(Api[OffsetFetchRequest, OffsetFetchResponse]):
    request: OffsetFetchRequestType
    response: OffsetFetchResponseType
