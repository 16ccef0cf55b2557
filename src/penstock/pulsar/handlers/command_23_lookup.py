"""LOOKUP: which broker serves a topic. This one does, at the address that the client came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import check_transient, is_transient, parse_topic
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


def refuse(request: CommandLookupTopic, code: ServerError.ValueType, message: str) -> BaseCommand:
    response = CommandLookupTopicResponse(
        response=CommandLookupTopicResponse.Failed,
        request_id=request.request_id,
        error=code,
        message=message,
    )
    return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)


@handles(BaseCommand.LOOKUP, refuse=refuse)
def handle(request: CommandLookupTopic, call: Call) -> BaseCommand:
    if is_transient(request.topic):
        check_transient(request.topic)
    else:
        parse_topic(request.topic)
    if request.advertised_listener_name:
        raise RefusedError(
            ServerError.NotAllowedError, "the broker has one listener, which has no name"
        )
    response = CommandLookupTopicResponse(
        brokerServiceUrl=f"pulsar://{call.client.broker_address}",
        response=CommandLookupTopicResponse.Connect,
        request_id=request.request_id,
        authoritative=True,
    )
    return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)
