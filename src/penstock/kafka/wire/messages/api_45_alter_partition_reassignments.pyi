# Written by `make stubs` from 45_alter_partition_reassignments.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterPartitionReassignmentsRequest(Struct):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...

    class ReassignableTopic(Struct):
        name: str = ""
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...

    class ReassignablePartition(Struct):
        partition_index: int = 0
        replicas: list[int] | None = None

class AlterPartitionReassignmentsRequestType(MessageType[AlterPartitionReassignmentsRequest]):
    __call__: type[AlterPartitionReassignmentsRequest]
    ReassignableTopic = AlterPartitionReassignmentsRequest.ReassignableTopic
    ReassignablePartition = AlterPartitionReassignmentsRequest.ReassignablePartition

class AlterPartitionReassignmentsResponse(Struct):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...

    class ReassignableTopicResponse(Struct):
        name: str = ""
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...

    class ReassignablePartitionResponse(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = ""

class AlterPartitionReassignmentsResponseType(MessageType[AlterPartitionReassignmentsResponse]):
    __call__: type[AlterPartitionReassignmentsResponse]
    ReassignableTopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    ReassignablePartitionResponse = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse

class AlterPartitionReassignmentsApi(Api[AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse]):
    request: AlterPartitionReassignmentsRequestType
    response: AlterPartitionReassignmentsResponseType
