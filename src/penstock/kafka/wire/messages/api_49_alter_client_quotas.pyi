# Written by `make stubs` from 49_alter_client_quotas.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AlterClientQuotasRequest(Struct):
    entries: list[AlterClientQuotasRequest.EntryData] = ...
    validate_only: bool = False

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = ...
        ops: list[AlterClientQuotasRequest.OpData] = ...

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

    class OpData(Struct):
        key: str = ""
        value: float = 0.0
        remove: bool = False

class AlterClientQuotasRequestType(MessageType[AlterClientQuotasRequest]):
    __call__: type[AlterClientQuotasRequest]
    EntryData = AlterClientQuotasRequest.EntryData
    EntityData = AlterClientQuotasRequest.EntityData
    OpData = AlterClientQuotasRequest.OpData

class AlterClientQuotasResponse(Struct):
    throttle_time_ms: int = 0
    entries: list[AlterClientQuotasResponse.EntryData] = ...

    class EntryData(Struct):
        error_code: int = 0
        error_message: str | None = ""
        entity: list[AlterClientQuotasResponse.EntityData] = ...

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

class AlterClientQuotasResponseType(MessageType[AlterClientQuotasResponse]):
    __call__: type[AlterClientQuotasResponse]
    EntryData = AlterClientQuotasResponse.EntryData
    EntityData = AlterClientQuotasResponse.EntityData

class AlterClientQuotasApi(Api[AlterClientQuotasRequest, AlterClientQuotasResponse]):
    request: AlterClientQuotasRequestType
    response: AlterClientQuotasResponseType
