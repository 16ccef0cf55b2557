# Written by `make stubs` from 66_list_transactions.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListTransactionsRequest(Struct):
    state_filters: list[str] = ...
    producer_id_filters: list[int] = ...
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

class ListTransactionsRequestType(MessageType[ListTransactionsRequest]):
    __call__: type[ListTransactionsRequest]

class ListTransactionsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = ...
    transaction_states: list[ListTransactionsResponse.TransactionState] = ...

    class TransactionState(Struct):
        transactional_id: str = ""
        producer_id: int = 0
        transaction_state: str = ""

class ListTransactionsResponseType(MessageType[ListTransactionsResponse]):
    __call__: type[ListTransactionsResponse]
    TransactionState = ListTransactionsResponse.TransactionState

class ListTransactionsApi(Api[ListTransactionsRequest, ListTransactionsResponse]):
    request: ListTransactionsRequestType
    response: ListTransactionsResponseType
