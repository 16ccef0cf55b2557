# Written by `make stubs` from 64_unregister_broker.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class UnregisterBrokerRequest(Struct):
    broker_id: int = 0

class UnregisterBrokerRequestType(MessageType[UnregisterBrokerRequest]):
    __call__: type[UnregisterBrokerRequest]

class UnregisterBrokerResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

class UnregisterBrokerResponseType(MessageType[UnregisterBrokerResponse]):
    __call__: type[UnregisterBrokerResponse]

class UnregisterBrokerApi(Api[UnregisterBrokerRequest, UnregisterBrokerResponse]):
    request: UnregisterBrokerRequestType
    response: UnregisterBrokerResponseType
