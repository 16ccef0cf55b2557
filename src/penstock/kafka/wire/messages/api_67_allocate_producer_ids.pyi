# Written by `make stubs` from 67_allocate_producer_ids.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AllocateProducerIdsRequest(Struct):
    broker_id: int = 0
    broker_epoch: int = -1

class AllocateProducerIdsRequestType(MessageType[AllocateProducerIdsRequest]):
    __call__: type[AllocateProducerIdsRequest]

class AllocateProducerIdsResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0

class AllocateProducerIdsResponseType(MessageType[AllocateProducerIdsResponse]):
    __call__: type[AllocateProducerIdsResponse]

class AllocateProducerIdsApi(Api[AllocateProducerIdsRequest, AllocateProducerIdsResponse]):
    request: AllocateProducerIdsRequestType
    response: AllocateProducerIdsResponseType
