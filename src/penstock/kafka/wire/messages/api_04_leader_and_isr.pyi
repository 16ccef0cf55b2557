# Written by `make stubs` from 04_leader_and_isr.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class LeaderAndIsrRequest(Struct):
    controller_id: int = 0
    is_kraft_controller: bool = False
    controller_epoch: int = 0
    broker_epoch: int = -1
    type: int = 0
    ungrouped_partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...
    topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState] = ...
    live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = ...

    class LeaderAndIsrTopicState(Struct):
        topic_name: str = ""
        topic_id: UUID = ...
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = ...

    class LeaderAndIsrPartitionState(Struct):
        topic_name: str = ""
        partition_index: int = 0
        controller_epoch: int = 0
        leader: int = 0
        leader_epoch: int = 0
        isr: list[int] = ...
        partition_epoch: int = 0
        replicas: list[int] = ...
        adding_replicas: list[int] = ...
        removing_replicas: list[int] = ...
        is_new: bool = False
        leader_recovery_state: int = 0

    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = 0
        host_name: str = ""
        port: int = 0

class LeaderAndIsrRequestType(MessageType[LeaderAndIsrRequest]):
    __call__: type[LeaderAndIsrRequest]
    LeaderAndIsrTopicState = LeaderAndIsrRequest.LeaderAndIsrTopicState
    LeaderAndIsrPartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
    LeaderAndIsrLiveLeader = LeaderAndIsrRequest.LeaderAndIsrLiveLeader

class LeaderAndIsrResponse(Struct):
    error_code: int = 0
    partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...
    topics: list[LeaderAndIsrResponse.LeaderAndIsrTopicError] = ...

    class LeaderAndIsrTopicError(Struct):
        topic_id: UUID = ...
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...

    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = ""
        partition_index: int = 0
        error_code: int = 0

class LeaderAndIsrResponseType(MessageType[LeaderAndIsrResponse]):
    __call__: type[LeaderAndIsrResponse]
    LeaderAndIsrTopicError = LeaderAndIsrResponse.LeaderAndIsrTopicError
    LeaderAndIsrPartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError

class LeaderAndIsrApi(Api[LeaderAndIsrRequest, LeaderAndIsrResponse]):
    request: LeaderAndIsrRequestType
    response: LeaderAndIsrResponseType
