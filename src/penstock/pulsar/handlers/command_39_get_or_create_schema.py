"""GET_OR_CREATE_SCHEMA: refused, for there are no schemas yet, but for that of plain bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import refuse_schema
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import parse_topic
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetOrCreateSchema,
    CommandGetOrCreateSchemaResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


def refuse(
    request: CommandGetOrCreateSchema, code: ServerError.ValueType, message: str
) -> BaseCommand:
    return _answer(
        CommandGetOrCreateSchemaResponse(
            request_id=request.request_id, error_code=code, error_message=message
        )
    )


@handles(BaseCommand.GET_OR_CREATE_SCHEMA, refuse=refuse)
def handle(request: CommandGetOrCreateSchema, _call: Call) -> BaseCommand:
    parse_topic(request.topic)
    refuse_schema(request.schema)
    return _answer(
        CommandGetOrCreateSchemaResponse(request_id=request.request_id, schema_version=b"")
    )


def _answer(response: CommandGetOrCreateSchemaResponse) -> BaseCommand:
    return BaseCommand(
        type=BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE, getOrCreateSchemaResponse=response
    )
