# Written by `make stubs` from 92_delete_share_group_offsets.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteShareGroupOffsetsRequest(Struct):
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ""

class DeleteShareGroupOffsetsRequestType(MessageType[DeleteShareGroupOffsetsRequest]):
    __call__: type[DeleteShareGroupOffsetsRequest]
    DeleteShareGroupOffsetsRequestTopic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic

class DeleteShareGroupOffsetsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        error_code: int = 0
        error_message: str | None = None

class DeleteShareGroupOffsetsResponseType(MessageType[DeleteShareGroupOffsetsResponse]):
    __call__: type[DeleteShareGroupOffsetsResponse]
    DeleteShareGroupOffsetsResponseTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic

class DeleteShareGroupOffsetsApi(Api[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse]):
    request: DeleteShareGroupOffsetsRequestType
    response: DeleteShareGroupOffsetsResponseType
