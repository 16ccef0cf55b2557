"""LOOKUP: which broker serves a topic. This one does, at the address that the client came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.topics import parse_topic
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(session: PulsarSession, request: CommandLookupTopic, _entry: memoryview) -> BaseCommand:
    parse_topic(request.topic)
    host, port = session.transport.local_address
    response = CommandLookupTopicResponse(
        brokerServiceUrl=f"pulsar://{f'[{host}]' if ':' in host else host}:{port}",
        response=CommandLookupTopicResponse.Connect,
        request_id=request.request_id,
        authoritative=True,
    )
    return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)


def refuse(request: CommandLookupTopic, code: ServerError.ValueType, message: str) -> BaseCommand:
    response = CommandLookupTopicResponse(
        response=CommandLookupTopicResponse.Failed,
        request_id=request.request_id,
        error=code,
        message=message,
    )
    return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)
