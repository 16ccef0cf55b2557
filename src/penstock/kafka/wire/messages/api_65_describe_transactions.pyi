# Written by `make stubs` from 65_describe_transactions.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeTransactionsRequest(Struct):
    transactional_ids: list[str] = ...

class DescribeTransactionsRequestType(MessageType[DescribeTransactionsRequest]):
    __call__: type[DescribeTransactionsRequest]

class DescribeTransactionsResponse(Struct):
    throttle_time_ms: int = 0
    transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...

    class TransactionState(Struct):
        error_code: int = 0
        transactional_id: str = ""
        transaction_state: str = ""
        transaction_timeout_ms: int = 0
        transaction_start_time_ms: int = 0
        producer_id: int = 0
        producer_epoch: int = 0
        topics: list[DescribeTransactionsResponse.TopicData] = ...

    class TopicData(Struct):
        topic: str = ""
        partitions: list[int] = ...

class DescribeTransactionsResponseType(MessageType[DescribeTransactionsResponse]):
    __call__: type[DescribeTransactionsResponse]
    TransactionState = DescribeTransactionsResponse.TransactionState
    TopicData = DescribeTransactionsResponse.TopicData

class DescribeTransactionsApi(Api[DescribeTransactionsRequest, DescribeTransactionsResponse]):
    request: DescribeTransactionsRequestType
    response: DescribeTransactionsResponseType
