# Written by `make stubs` from 56_alter_partition.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterPartitionRequest(Struct):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[AlterPartitionRequest.TopicData] = ...

    class TopicData(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partitions: list[AlterPartitionRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        leader_epoch: int = 0
        new_isr: list[int] = ...
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...
        leader_recovery_state: int = 0
        partition_epoch: int = 0

    class BrokerState(Struct):
        broker_id: int = 0
        broker_epoch: int = -1

class AlterPartitionRequestType(MessageType[AlterPartitionRequest]):
    __call__: type[AlterPartitionRequest]
    TopicData = AlterPartitionRequest.TopicData
    PartitionData = AlterPartitionRequest.PartitionData
    BrokerState = AlterPartitionRequest.BrokerState

class AlterPartitionResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[AlterPartitionResponse.TopicData] = ...

    class TopicData(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partitions: list[AlterPartitionResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0
        leader_id: int = 0
        leader_epoch: int = 0
        isr: list[int] = ...
        leader_recovery_state: int = 0
        partition_epoch: int = 0

class AlterPartitionResponseType(MessageType[AlterPartitionResponse]):
    __call__: type[AlterPartitionResponse]
    TopicData = AlterPartitionResponse.TopicData
    PartitionData = AlterPartitionResponse.PartitionData

class AlterPartitionApi(Api[AlterPartitionRequest, AlterPartitionResponse]):
    request: AlterPartitionRequestType
    response: AlterPartitionResponseType
