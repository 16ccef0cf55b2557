# Written by `make stubs` from 46_list_partition_reassignments.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListPartitionReassignmentsRequest(Struct):
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None

    class ListPartitionReassignmentsTopics(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

class ListPartitionReassignmentsRequestType(MessageType[ListPartitionReassignmentsRequest]):
    __call__: type[ListPartitionReassignmentsRequest]
    ListPartitionReassignmentsTopics = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics

class ListPartitionReassignmentsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...

    class OngoingTopicReassignment(Struct):
        name: str = ""
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...

    class OngoingPartitionReassignment(Struct):
        partition_index: int = 0
        replicas: list[int] = ...
        adding_replicas: list[int] = ...
        removing_replicas: list[int] = ...

class ListPartitionReassignmentsResponseType(MessageType[ListPartitionReassignmentsResponse]):
    __call__: type[ListPartitionReassignmentsResponse]
    OngoingTopicReassignment = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    OngoingPartitionReassignment = ListPartitionReassignmentsResponse.OngoingPartitionReassignment

class ListPartitionReassignmentsApi(Api[ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse]):
    request: ListPartitionReassignmentsRequestType
    response: ListPartitionReassignmentsResponseType
