# Written by `make stubs` from 30006_append_at.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import RecordData, Struct
from penstock.session import Buffer

class AppendAtRequest(Struct):
    topic: str = ""
    partition_index: int = 0
    end_offset: int = 0
    base_offset: int = 0
    records: RecordData[Buffer | None] = ...

class AppendAtRequestType(MessageType[AppendAtRequest]):
    __call__: type[AppendAtRequest]

class AppendAtResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    end_offset: int = -1

class AppendAtResponseType(MessageType[AppendAtResponse]):
    __call__: type[AppendAtResponse]

class AppendAtApi(Api[AppendAtRequest, AppendAtResponse]):
    request: AppendAtRequestType
    response: AppendAtResponseType
