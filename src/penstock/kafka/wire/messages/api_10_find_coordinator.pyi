# Written by `make stubs` from 10_find_coordinator.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class FindCoordinatorRequest(Struct):
    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = ...

class FindCoordinatorRequestType(MessageType[FindCoordinatorRequest]):
    __call__: type[FindCoordinatorRequest]

class FindCoordinatorResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[FindCoordinatorResponse.Coordinator] = ...

    class Coordinator(Struct):
        key: str = ""
        node_id: int = 0
        host: str = ""
        port: int = 0
        error_code: int = 0
        error_message: str | None = ""

class FindCoordinatorResponseType(MessageType[FindCoordinatorResponse]):
    __call__: type[FindCoordinatorResponse]
    Coordinator = FindCoordinatorResponse.Coordinator

class FindCoordinatorApi(Api[FindCoordinatorRequest, FindCoordinatorResponse]):
    request: FindCoordinatorRequestType
    response: FindCoordinatorResponseType
