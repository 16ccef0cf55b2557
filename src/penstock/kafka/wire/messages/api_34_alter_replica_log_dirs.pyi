# Written by `make stubs` from 34_alter_replica_log_dirs.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterReplicaLogDirsRequest(Struct):
    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...

    class AlterReplicaLogDir(Struct):
        path: str = ""
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...

    class AlterReplicaLogDirTopic(Struct):
        name: str = ""
        partitions: list[int] = ...

class AlterReplicaLogDirsRequestType(MessageType[AlterReplicaLogDirsRequest]):
    __call__: type[AlterReplicaLogDirsRequest]
    AlterReplicaLogDir = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    AlterReplicaLogDirTopic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic

class AlterReplicaLogDirsResponse(Struct):
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = ""
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = 0
        error_code: int = 0

class AlterReplicaLogDirsResponseType(MessageType[AlterReplicaLogDirsResponse]):
    __call__: type[AlterReplicaLogDirsResponse]
    AlterReplicaLogDirTopicResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    AlterReplicaLogDirPartitionResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult

class AlterReplicaLogDirsApi(Api[AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse]):
    request: AlterReplicaLogDirsRequestType
    response: AlterReplicaLogDirsResponseType
