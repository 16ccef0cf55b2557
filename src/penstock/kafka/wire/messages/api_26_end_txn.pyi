# Written by `make stubs` from 26_end_txn.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class EndTxnRequest(Struct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

class EndTxnRequestType(MessageType[EndTxnRequest]):
    __call__: type[EndTxnRequest]

class EndTxnResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1

class EndTxnResponseType(MessageType[EndTxnResponse]):
    __call__: type[EndTxnResponse]

class EndTxnApi(Api[EndTxnRequest, EndTxnResponse]):
    request: EndTxnRequestType
    response: EndTxnResponseType
