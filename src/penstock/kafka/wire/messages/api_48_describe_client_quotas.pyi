# Written by `make stubs` from 48_describe_client_quotas.schema.

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class DescribeClientQuotasRequest(Struct):
    components: list[DescribeClientQuotasRequest.ComponentData] = ...
    strict: bool = False

    class ComponentData(Struct):
        entity_type: str = ""
        match_type: int = 0
        match: str | None = ""

class DescribeClientQuotasRequestType(MessageType[DescribeClientQuotasRequest]):
    __call__: type[DescribeClientQuotasRequest]
    ComponentData = DescribeClientQuotasRequest.ComponentData

class DescribeClientQuotasResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[DescribeClientQuotasResponse.EntryData] | None = ...

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = ...
        values: list[DescribeClientQuotasResponse.ValueData] = ...

    class EntityData(Struct):
        entity_type: str = ""
        entity_name: str | None = ""

    class ValueData(Struct):
        key: str = ""
        value: float = 0.0

class DescribeClientQuotasResponseType(MessageType[DescribeClientQuotasResponse]):
    __call__: type[DescribeClientQuotasResponse]
    EntryData = DescribeClientQuotasResponse.EntryData
    EntityData = DescribeClientQuotasResponse.EntityData
    ValueData = DescribeClientQuotasResponse.ValueData

class DescribeClientQuotasApi(Api[DescribeClientQuotasRequest, DescribeClientQuotasResponse]):
    request: DescribeClientQuotasRequestType
    response: DescribeClientQuotasResponseType
