# Written by `make stubs` from 37_create_partitions.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class CreatePartitionsRequest(Struct):
    topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ...
    timeout_ms: int = 0
    validate_only: bool = False

    class CreatePartitionsTopic(Struct):
        name: str = ""
        count: int = 0
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = ...

class CreatePartitionsRequestType(MessageType[CreatePartitionsRequest]):
    __call__: type[CreatePartitionsRequest]
    CreatePartitionsTopic = CreatePartitionsRequest.CreatePartitionsTopic
    CreatePartitionsAssignment = CreatePartitionsRequest.CreatePartitionsAssignment

class CreatePartitionsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...

    class CreatePartitionsTopicResult(Struct):
        name: str = ""
        error_code: int = 0
        error_message: str | None = None

class CreatePartitionsResponseType(MessageType[CreatePartitionsResponse]):
    __call__: type[CreatePartitionsResponse]
    CreatePartitionsTopicResult = CreatePartitionsResponse.CreatePartitionsTopicResult

class CreatePartitionsApi(Api[CreatePartitionsRequest, CreatePartitionsResponse]):
    request: CreatePartitionsRequestType
    response: CreatePartitionsResponseType
