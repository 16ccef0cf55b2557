# Written by `make stubs` from 19_create_topics.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class CreateTopicsRequest(Struct):
    topics: list[CreateTopicsRequest.CreatableTopic] = ...
    timeout_ms: int = 60000
    validate_only: bool = False

    class CreatableTopic(Struct):
        name: str = ""
        num_partitions: int = 0
        replication_factor: int = 0
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ...
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...

    class CreatableReplicaAssignment(Struct):
        partition_index: int = 0
        broker_ids: list[int] = ...

    class CreatableTopicConfig(Struct):
        name: str = ""
        value: str | None = ""

class CreateTopicsRequestType(MessageType[CreateTopicsRequest]):
    __call__: type[CreateTopicsRequest]
    CreatableTopic = CreateTopicsRequest.CreatableTopic
    CreatableReplicaAssignment = CreateTopicsRequest.CreatableReplicaAssignment
    CreatableTopicConfig = CreateTopicsRequest.CreatableTopicConfig

class CreateTopicsResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[CreateTopicsResponse.CreatableTopicResult] = ...

    class CreatableTopicResult(Struct):
        name: str = ""
        topic_id: UUID = ...
        error_code: int = 0
        error_message: str | None = ""
        topic_config_error_code: int = 0
        num_partitions: int = -1
        replication_factor: int = -1
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ...

    class CreatableTopicConfigs(Struct):
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: int = -1
        is_sensitive: bool = False

class CreateTopicsResponseType(MessageType[CreateTopicsResponse]):
    __call__: type[CreateTopicsResponse]
    CreatableTopicResult = CreateTopicsResponse.CreatableTopicResult
    CreatableTopicConfigs = CreateTopicsResponse.CreatableTopicConfigs

class CreateTopicsApi(Api[CreateTopicsRequest, CreateTopicsResponse]):
    request: CreateTopicsRequestType
    response: CreateTopicsResponseType
