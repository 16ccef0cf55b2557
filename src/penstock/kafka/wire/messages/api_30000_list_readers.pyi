# Written by `make stubs` from 30000_list_readers.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class ListReadersRequest(Struct):
    names: list[str] | None = ...

class ListReadersRequestType(MessageType[ListReadersRequest]):
    __call__: type[ListReadersRequest]

class ListReadersResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    readers: list[ListReadersResponse.Reader] = ...

    class Reader(Struct):
        protocol: str = ""
        name: str = ""
        reader_type: str = ""
        reader_state: str = ""
        members: int = 0
        topics: list[ListReadersResponse.ReaderTopic] = ...

    class ReaderTopic(Struct):
        name: str = ""
        partitions: list[ListReadersResponse.ReaderPartition] = ...

    class ReaderPartition(Struct):
        partition_index: int = 0
        position: int = 0
        end_offset: int = 0
        backlog: int = 0

class ListReadersResponseType(MessageType[ListReadersResponse]):
    __call__: type[ListReadersResponse]
    Reader = ListReadersResponse.Reader
    ReaderTopic = ListReadersResponse.ReaderTopic
    ReaderPartition = ListReadersResponse.ReaderPartition

class ListReadersApi(Api[ListReadersRequest, ListReadersResponse]):
    request: ListReadersRequestType
    response: ListReadersResponseType
