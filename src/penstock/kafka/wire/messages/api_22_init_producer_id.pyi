# Written by `make stubs` from 22_init_producer_id.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class InitProducerIdRequest(Struct):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable_2pc: bool = False
    keep_prepared_txn: bool = False

class InitProducerIdRequestType(MessageType[InitProducerIdRequest]):
    __call__: type[InitProducerIdRequest]

class InitProducerIdResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1

class InitProducerIdResponseType(MessageType[InitProducerIdResponse]):
    __call__: type[InitProducerIdResponse]

class InitProducerIdApi(Api[InitProducerIdRequest, InitProducerIdResponse]):
    request: InitProducerIdRequestType
    response: InitProducerIdResponseType
