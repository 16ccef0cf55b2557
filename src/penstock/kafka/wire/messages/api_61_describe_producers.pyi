# Written by `make stubs` from 61_describe_producers.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeProducersRequest(Struct):
    topics: list[DescribeProducersRequest.TopicRequest] = ...

    class TopicRequest(Struct):
        name: str = ""
        partition_indexes: list[int] = ...

class DescribeProducersRequestType(MessageType[DescribeProducersRequest]):
    __call__: type[DescribeProducersRequest]
    TopicRequest = DescribeProducersRequest.TopicRequest

class DescribeProducersResponse(Struct):
    throttle_time_ms: int = 0
    topics: list[DescribeProducersResponse.TopicResponse] = ...

    class TopicResponse(Struct):
        name: str = ""
        partitions: list[DescribeProducersResponse.PartitionResponse] = ...

    class PartitionResponse(Struct):
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        active_producers: list[DescribeProducersResponse.ProducerState] = ...

    class ProducerState(Struct):
        producer_id: int = 0
        producer_epoch: int = 0
        last_sequence: int = -1
        last_timestamp: int = -1
        coordinator_epoch: int = 0
        current_txn_start_offset: int = -1

class DescribeProducersResponseType(MessageType[DescribeProducersResponse]):
    __call__: type[DescribeProducersResponse]
    TopicResponse = DescribeProducersResponse.TopicResponse
    PartitionResponse = DescribeProducersResponse.PartitionResponse
    ProducerState = DescribeProducersResponse.ProducerState

class DescribeProducersApi(Api[DescribeProducersRequest, DescribeProducersResponse]):
    request: DescribeProducersRequestType
    response: DescribeProducersResponseType
