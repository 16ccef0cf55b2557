# Written by `make stubs` from 25_add_offsets_to_txn.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AddOffsetsToTxnRequest(Struct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

class AddOffsetsToTxnRequestType(MessageType[AddOffsetsToTxnRequest]):
    __call__: type[AddOffsetsToTxnRequest]

class AddOffsetsToTxnResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0

class AddOffsetsToTxnResponseType(MessageType[AddOffsetsToTxnResponse]):
    __call__: type[AddOffsetsToTxnResponse]

class AddOffsetsToTxnApi(Api[AddOffsetsToTxnRequest, AddOffsetsToTxnResponse]):
    request: AddOffsetsToTxnRequestType
    response: AddOffsetsToTxnResponseType
