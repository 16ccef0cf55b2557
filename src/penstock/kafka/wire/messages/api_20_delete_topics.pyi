# Written by `make stubs` from 20_delete_topics.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DeleteTopicsRequest(Struct):
    topics: list[DeleteTopicsRequest.DeleteTopicState] = ...
    topic_names: list[str] = ...
    timeout_ms: int = 0

    class DeleteTopicState(Struct):
        name: str | None = None
        topic_id: UUID = ...

class DeleteTopicsRequestType(MessageType[DeleteTopicsRequest]):
    __call__: type[DeleteTopicsRequest]
    DeleteTopicState = DeleteTopicsRequest.DeleteTopicState

class DeleteTopicsResponse(Struct):
    throttle_time_ms: int = 0
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...

    class DeletableTopicResult(Struct):
        name: str | None = ""
        topic_id: UUID = ...
        error_code: int = 0
        error_message: str | None = None

class DeleteTopicsResponseType(MessageType[DeleteTopicsResponse]):
    __call__: type[DeleteTopicsResponse]
    DeletableTopicResult = DeleteTopicsResponse.DeletableTopicResult

class DeleteTopicsApi(Api[DeleteTopicsRequest, DeleteTopicsResponse]):
    request: DeleteTopicsRequestType
    response: DeleteTopicsResponseType
