# Written by `make stubs` from 03_metadata.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class MetadataRequest(Struct):
    topics: list[MetadataRequest.MetadataRequestTopic] | None = ...
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    class MetadataRequestTopic(Struct):
        topic_id: UUID = ...
        name: str | None = ""

class MetadataRequestType(MessageType[MetadataRequest]):
    __call__: type[MetadataRequest]
    MetadataRequestTopic = MetadataRequest.MetadataRequestTopic

class MetadataResponse(Struct):
    throttle_time_ms: int = 0
    brokers: list[MetadataResponse.MetadataResponseBroker] = ...
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponse.MetadataResponseTopic] = ...
    cluster_authorized_operations: int = ...
    error_code: int = 0

    class MetadataResponseBroker(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

    class MetadataResponseTopic(Struct):
        error_code: int = 0
        name: str | None = ""
        topic_id: UUID = ...
        is_internal: bool = False
        partitions: list[MetadataResponse.MetadataResponsePartition] = ...
        topic_authorized_operations: int = ...

    class MetadataResponsePartition(Struct):
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1
        replica_nodes: list[int] = ...
        isr_nodes: list[int] = ...
        offline_replicas: list[int] = ...

class MetadataResponseType(MessageType[MetadataResponse]):
    __call__: type[MetadataResponse]
    MetadataResponseBroker = MetadataResponse.MetadataResponseBroker
    MetadataResponseTopic = MetadataResponse.MetadataResponseTopic
    MetadataResponsePartition = MetadataResponse.MetadataResponsePartition

class MetadataApi(Api[MetadataRequest, MetadataResponse]):
    request: MetadataRequestType
    response: MetadataResponseType
