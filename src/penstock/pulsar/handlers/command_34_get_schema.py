"""GET_SCHEMA: no topic has a schema here yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetSchema,
    CommandGetSchemaResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


def refuse(request: CommandGetSchema, code: ServerError.ValueType, message: str) -> BaseCommand:
    response = CommandGetSchemaResponse(
        request_id=request.request_id, error_code=code, error_message=message
    )
    return BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=response)


@handles(BaseCommand.GET_SCHEMA, refuse=refuse)
def handle(request: CommandGetSchema, _call: Call) -> BaseCommand:
    raise RefusedError(ServerError.TopicNotFound, f"{request.topic} has no schema")
