# Written by `make stubs` from 06_update_metadata.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class UpdateMetadataRequest(Struct):
    controller_id: int = 0
    is_kraft_controller: bool = False
    type: int = 0
    controller_epoch: int = 0
    broker_epoch: int = -1
    ungrouped_partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...
    topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState] = ...
    live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker] = ...

    class UpdateMetadataTopicState(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partition_states: list[UpdateMetadataRequest.UpdateMetadataPartitionState] = ...

    class UpdateMetadataPartitionState(Struct):
        topic_name: str = ""
        partition_index: int = 0
        controller_epoch: int = 0
        leader: int = 0
        leader_epoch: int = 0
        isr: list[int] = ...
        zk_version: int = 0
        replicas: list[int] = ...
        offline_replicas: list[int] = ...

    class UpdateMetadataBroker(Struct):
        id: int = 0
        v0_host: str = ""
        v0_port: int = 0
        endpoints: list[UpdateMetadataRequest.UpdateMetadataEndpoint] = ...
        rack: str | None = ""

    class UpdateMetadataEndpoint(Struct):
        port: int = 0
        host: str = ""
        listener: str = ""
        security_protocol: int = 0

class UpdateMetadataRequestType(MessageType[UpdateMetadataRequest]):
    __call__: type[UpdateMetadataRequest]
    UpdateMetadataTopicState = UpdateMetadataRequest.UpdateMetadataTopicState
    UpdateMetadataPartitionState = UpdateMetadataRequest.UpdateMetadataPartitionState
    UpdateMetadataBroker = UpdateMetadataRequest.UpdateMetadataBroker
    UpdateMetadataEndpoint = UpdateMetadataRequest.UpdateMetadataEndpoint

class UpdateMetadataResponse(Struct):
    error_code: int = 0

class UpdateMetadataResponseType(MessageType[UpdateMetadataResponse]):
    __call__: type[UpdateMetadataResponse]

class UpdateMetadataApi(Api[UpdateMetadataRequest, UpdateMetadataResponse]):
    request: UpdateMetadataRequestType
    response: UpdateMetadataResponseType
