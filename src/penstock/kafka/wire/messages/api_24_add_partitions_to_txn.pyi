# Written by `make stubs` from 24_add_partitions_to_txn.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AddPartitionsToTxnRequest(Struct):
    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0
        verify_only: bool = False
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...

    class AddPartitionsToTxnTopic(Struct):
        name: str = ""
        partitions: list[int] = ...

class AddPartitionsToTxnRequestType(MessageType[AddPartitionsToTxnRequest]):
    __call__: type[AddPartitionsToTxnRequest]
    AddPartitionsToTxnTransaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    AddPartitionsToTxnTopic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

class AddPartitionsToTxnResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = ""
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = ""
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = 0
        partition_error_code: int = 0

class AddPartitionsToTxnResponseType(MessageType[AddPartitionsToTxnResponse]):
    __call__: type[AddPartitionsToTxnResponse]
    AddPartitionsToTxnResult = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
    AddPartitionsToTxnTopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    AddPartitionsToTxnPartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult

class AddPartitionsToTxnApi(Api[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse]):
    request: AddPartitionsToTxnRequestType
    response: AddPartitionsToTxnResponseType
