"""GET_OR_CREATE_SCHEMA: the version of a schema that a producer goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.schemas import version_to_go_on_with
from penstock.pulsar.topics import find_topic
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
async def handle(request: CommandGetOrCreateSchema, call: Call) -> BaseCommand:
    topic = find_topic(call.client, request.topic)
    version = await version_to_go_on_with(call.client, topic, request.schema)
    return _answer(
        CommandGetOrCreateSchemaResponse(request_id=request.request_id, schema_version=version)
    )


def _answer(response: CommandGetOrCreateSchemaResponse) -> BaseCommand:
    return BaseCommand(
        type=BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE, getOrCreateSchemaResponse=response
    )
