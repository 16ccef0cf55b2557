# Written by `make stubs` from 91_alter_share_group_offsets.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterShareGroupOffsetsRequest(Struct):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int = 0
        start_offset: int = 0

class AlterShareGroupOffsetsRequestType(MessageType[AlterShareGroupOffsetsRequest]):
    __call__: type[AlterShareGroupOffsetsRequest]
    AlterShareGroupOffsetsRequestTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    AlterShareGroupOffsetsRequestPartition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition

class AlterShareGroupOffsetsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...

    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None

class AlterShareGroupOffsetsResponseType(MessageType[AlterShareGroupOffsetsResponse]):
    __call__: type[AlterShareGroupOffsetsResponse]
    AlterShareGroupOffsetsResponseTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
    AlterShareGroupOffsetsResponsePartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition

class AlterShareGroupOffsetsApi(Api[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse]):
    request: AlterShareGroupOffsetsRequestType
    response: AlterShareGroupOffsetsResponseType
