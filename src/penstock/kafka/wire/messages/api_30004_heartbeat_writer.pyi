# Written by `make stubs` from 30004_heartbeat_writer.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class HeartbeatWriterRequest(Struct):
    writer: str = ""

class HeartbeatWriterRequestType(MessageType[HeartbeatWriterRequest]):
    __call__: type[HeartbeatWriterRequest]

class HeartbeatWriterResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    epoch: int = 0

class HeartbeatWriterResponseType(MessageType[HeartbeatWriterResponse]):
    __call__: type[HeartbeatWriterResponse]

class HeartbeatWriterApi(Api[HeartbeatWriterRequest, HeartbeatWriterResponse]):
    request: HeartbeatWriterRequestType
    response: HeartbeatWriterResponseType
