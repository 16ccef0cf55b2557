# Written by `make stubs` from 00_produce.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class ProduceRequest(Struct):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[ProduceRequest.TopicProduceData] = ...

    class TopicProduceData(Struct):
        name: str = ""
        topic_id: UUID = ...
        partition_data: list[ProduceRequest.PartitionProduceData] = ...

    class PartitionProduceData(Struct):
        index: int = 0
        records: RecordData[Buffer | None] = ...

class ProduceRequestType(MessageType[ProduceRequest]):
    __call__: type[ProduceRequest]
    TopicProduceData = ProduceRequest.TopicProduceData
    PartitionProduceData = ProduceRequest.PartitionProduceData

class ProduceResponse(Struct):
    responses: list[ProduceResponse.TopicProduceResponse] = ...
    throttle_time_ms: int = 0
    node_endpoints: list[ProduceResponse.NodeEndpoint] = ...

    class TopicProduceResponse(Struct):
        name: str = ""
        topic_id: UUID = ...
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...

    class PartitionProduceResponse(Struct):
        index: int = 0
        error_code: int = 0
        base_offset: int = 0
        log_append_time_ms: int = -1
        log_start_offset: int = -1
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...
        error_message: str | None = None
        current_leader: ProduceResponse.LeaderIdAndEpoch = ...

    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = 0
        batch_index_error_message: str | None = None

    class LeaderIdAndEpoch(Struct):
        leader_id: int = -1
        leader_epoch: int = -1

    class NodeEndpoint(Struct):
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None

class ProduceResponseType(MessageType[ProduceResponse]):
    __call__: type[ProduceResponse]
    TopicProduceResponse = ProduceResponse.TopicProduceResponse
    PartitionProduceResponse = ProduceResponse.PartitionProduceResponse
    BatchIndexAndErrorMessage = ProduceResponse.BatchIndexAndErrorMessage
    LeaderIdAndEpoch = ProduceResponse.LeaderIdAndEpoch
    NodeEndpoint = ProduceResponse.NodeEndpoint

class ProduceApi(Api[ProduceRequest, ProduceResponse]):
    request: ProduceRequestType
    response: ProduceResponseType
