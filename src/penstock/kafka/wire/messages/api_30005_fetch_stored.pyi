# Written by `make stubs` from 30005_fetch_stored.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class FetchStoredRequest(Struct):
    topic: str = ""
    topic_id: UUID = ...
    partition_index: int = 0
    fetch_offset: int = 0
    max_bytes: int = 0
    isolation_level: int = 0

class FetchStoredRequestType(MessageType[FetchStoredRequest]):
    __call__: type[FetchStoredRequest]

class FetchStoredResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    log_start_offset: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    aborted_transactions: list[FetchStoredResponse.AbortedTransaction] = ...
    damage: FetchStoredResponse.Damage | None = ...
    records: RecordData[Buffer | None] = ...

    class AbortedTransaction(Struct):
        producer_id: int = 0
        first_offset: int = 0

    class Damage(Struct):
        base_offset: int = 0
        next_offset: int = 0
        segment_base_offset: int = 0
        segment_position: int = 0

class FetchStoredResponseType(MessageType[FetchStoredResponse]):
    __call__: type[FetchStoredResponse]
    AbortedTransaction = FetchStoredResponse.AbortedTransaction
    Damage = FetchStoredResponse.Damage

class FetchStoredApi(Api[FetchStoredRequest, FetchStoredResponse]):
    request: FetchStoredRequestType
    response: FetchStoredResponseType
