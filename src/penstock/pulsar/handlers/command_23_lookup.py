"""LOOKUP: which broker serves a topic. This one does, at the address that the client came to.

A client that asks for a listener by its name gets what the operator has set for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.advertised import Advertised
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
    plain, tls = _advertised(request.advertised_listener_name, call)
    response = CommandLookupTopicResponse(
        brokerServiceUrl=plain or None,
        brokerServiceUrlTls=tls or None,
        response=CommandLookupTopicResponse.Connect,
        request_id=request.request_id,
        authoritative=True,
    )
    return BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)


def _advertised(name: str, call: Call) -> Advertised:
    if not name:
        return Advertised(f"pulsar://{call.client.broker_address}")
    listener = call.broker.settings.pulsar_advertised_listeners.get(name)
    if listener is None:
        # Pulsar's code, ServiceNotReady, has clients ask until they give up.
        raise RefusedError(
            ServerError.NotAllowedError, f"no listener is named {name[:100]!r} in this broker"
        )
    return listener
