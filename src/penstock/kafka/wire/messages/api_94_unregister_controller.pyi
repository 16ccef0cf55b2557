# Written by `make stubs` from 94_unregister_controller.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class UnregisterControllerRequest(Struct):
    controller_id: int = 0

class UnregisterControllerRequestType(MessageType[UnregisterControllerRequest]):
    __call__: type[UnregisterControllerRequest]

class UnregisterControllerResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

class UnregisterControllerResponseType(MessageType[UnregisterControllerResponse]):
    __call__: type[UnregisterControllerResponse]

class UnregisterControllerApi(Api[UnregisterControllerRequest, UnregisterControllerResponse]):
    request: UnregisterControllerRequestType
    response: UnregisterControllerResponseType
