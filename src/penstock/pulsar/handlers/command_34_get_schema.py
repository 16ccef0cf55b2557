"""GET_SCHEMA: a version of a topic's schema, or the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownSchemaError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.schemas import decode_version, encode_schema, encode_version
from penstock.pulsar.topics import find_topic
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
def handle(request: CommandGetSchema, call: Call) -> BaseCommand:
    topic, schemas = find_topic(call.client, request.topic), call.broker.schemas
    if request.HasField("schema_version"):
        found = schemas.get(topic, decode_version(request.schema_version))
    else:
        latest = schemas.latest(topic)
        if latest is None:
            raise UnknownSchemaError(f"{request.topic} has no schema")
        found = latest
    response = CommandGetSchemaResponse(
        request_id=request.request_id,
        schema=encode_schema(found.schema),
        schema_version=encode_version(found.version),
    )
    return BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=response)
