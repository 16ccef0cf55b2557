# Written by `make stubs` from 73_assign_replicas_to_dirs.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AssignReplicasToDirsRequest(Struct):
    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...

    class DirectoryData(Struct):
        id: UUID = ...
        topics: list[AssignReplicasToDirsRequest.TopicData] = ...

    class TopicData(Struct):
        topic_id: UUID = ...
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0

class AssignReplicasToDirsRequestType(MessageType[AssignReplicasToDirsRequest]):
    __call__: type[AssignReplicasToDirsRequest]
    DirectoryData = AssignReplicasToDirsRequest.DirectoryData
    TopicData = AssignReplicasToDirsRequest.TopicData
    PartitionData = AssignReplicasToDirsRequest.PartitionData

class AssignReplicasToDirsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...

    class DirectoryData(Struct):
        id: UUID = ...
        topics: list[AssignReplicasToDirsResponse.TopicData] = ...

    class TopicData(Struct):
        topic_id: UUID = ...
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = 0
        error_code: int = 0

class AssignReplicasToDirsResponseType(MessageType[AssignReplicasToDirsResponse]):
    __call__: type[AssignReplicasToDirsResponse]
    DirectoryData = AssignReplicasToDirsResponse.DirectoryData
    TopicData = AssignReplicasToDirsResponse.TopicData
    PartitionData = AssignReplicasToDirsResponse.PartitionData

class AssignReplicasToDirsApi(Api[AssignReplicasToDirsRequest, AssignReplicasToDirsResponse]):
    request: AssignReplicasToDirsRequestType
    response: AssignReplicasToDirsResponseType
