# Written by `make stubs` from 43_elect_leaders.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ElectLeadersRequest(Struct):
    election_type: int = 0
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ...
    timeout_ms: int = 60000

    class TopicPartitions(Struct):
        topic: str = ""
        partitions: list[int] = ...

class ElectLeadersRequestType(MessageType[ElectLeadersRequest]):
    __call__: type[ElectLeadersRequest]
    TopicPartitions = ElectLeadersRequest.TopicPartitions

class ElectLeadersResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ...

    class ReplicaElectionResult(Struct):
        topic: str = ""
        partition_result: list[ElectLeadersResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition_id: int = 0
        error_code: int = 0
        error_message: str | None = ""

class ElectLeadersResponseType(MessageType[ElectLeadersResponse]):
    __call__: type[ElectLeadersResponse]
    ReplicaElectionResult = ElectLeadersResponse.ReplicaElectionResult
    PartitionResult = ElectLeadersResponse.PartitionResult

class ElectLeadersApi(Api[ElectLeadersRequest, ElectLeadersResponse]):
    request: ElectLeadersRequestType
    response: ElectLeadersResponseType
