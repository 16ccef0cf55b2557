# Written by `make stubs` from 05_stop_replica.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class StopReplicaRequest(Struct):
    controller_id: int = 0
    is_kraft_controller: bool = False
    controller_epoch: int = 0
    broker_epoch: int = -1
    delete_partitions: bool = False
    ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0] = ...
    topics: list[StopReplicaRequest.StopReplicaTopicV1] = ...
    topic_states: list[StopReplicaRequest.StopReplicaTopicState] = ...

    class StopReplicaPartitionV0(Struct):
        topic_name: str = ""
        partition_index: int = 0

    class StopReplicaTopicV1(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

    class StopReplicaTopicState(Struct):
        topic_name: str = ""
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = ...

    class StopReplicaPartitionState(Struct):
        partition_index: int = 0
        leader_epoch: int = -1
        delete_partition: bool = False

class StopReplicaRequestType(MessageType[StopReplicaRequest]):
    __call__: type[StopReplicaRequest]
    StopReplicaPartitionV0 = StopReplicaRequest.StopReplicaPartitionV0
    StopReplicaTopicV1 = StopReplicaRequest.StopReplicaTopicV1
    StopReplicaTopicState = StopReplicaRequest.StopReplicaTopicState
    StopReplicaPartitionState = StopReplicaRequest.StopReplicaPartitionState

class StopReplicaResponse(Struct):
    error_code: int = 0
    partition_errors: list[StopReplicaResponse.StopReplicaPartitionError] = ...

    class StopReplicaPartitionError(Struct):
        topic_name: str = ""
        partition_index: int = 0
        error_code: int = 0

class StopReplicaResponseType(MessageType[StopReplicaResponse]):
    __call__: type[StopReplicaResponse]
    StopReplicaPartitionError = StopReplicaResponse.StopReplicaPartitionError

class StopReplicaApi(Api[StopReplicaRequest, StopReplicaResponse]):
    request: StopReplicaRequestType
    response: StopReplicaResponseType
