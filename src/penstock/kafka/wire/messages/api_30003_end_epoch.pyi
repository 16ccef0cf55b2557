# Written by `make stubs` from 30003_end_epoch.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class EndEpochRequest(Struct):
    writer: str = ""
    epoch: int = 0
    committed: bool = False
    producers: list[EndEpochRequest.ProducerState] = ...
    fingerprint: str = ""

    class ProducerState(Struct):
        transactional_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0

class EndEpochRequestType(MessageType[EndEpochRequest]):
    __call__: type[EndEpochRequest]
    ProducerState = EndEpochRequest.ProducerState

class EndEpochResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    written: bool = False
    fingerprint: str = ""

class EndEpochResponseType(MessageType[EndEpochResponse]):
    __call__: type[EndEpochResponse]

class EndEpochApi(Api[EndEpochRequest, EndEpochResponse]):
    request: EndEpochRequestType
    response: EndEpochResponseType
