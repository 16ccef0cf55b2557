"""GET_TOPICS_OF_NAMESPACE: the names that a client with a pattern chooses from.

A pattern that the broker does not take is left to the client, who hears that nothing was filtered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pace import Pace
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import refusal
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topic_lists import (
    TopicPattern,
    matching,
    read_namespace,
    topics_hash,
    topics_of,
)
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call, Client


@handles(BaseCommand.GET_TOPICS_OF_NAMESPACE, refuse=refusal)
async def handle(request: CommandGetTopicsOfNamespace, call: Call) -> BaseCommand:
    async with call.client.listing:
        return await _list(request, call)


async def _list(request: CommandGetTopicsOfNamespace, call: Call) -> BaseCommand:
    namespace = read_namespace(request.namespace)
    pattern = await _pattern(call.client, request.topics_pattern)
    names: list[str] = []
    if request.mode != CommandGetTopicsOfNamespace.NON_PERSISTENT:
        names = await topics_of(call.broker.topics, namespace, pattern)
    if request.mode != CommandGetTopicsOfNamespace.PERSISTENT:
        transient = call.client.transient_topics.names(request.namespace)
        names = sorted([*await matching(transient, pattern), *names])
    found = topics_hash(names)
    changed = not request.topics_hash or request.topics_hash != found
    response = CommandGetTopicsOfNamespaceResponse(
        request_id=request.request_id,
        filtered=pattern is not None,
        topics_hash=found,
        changed=changed,
    )
    if changed:
        await Pace().each(names, response.topics.append)
    return BaseCommand(
        type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=response
    )


async def _pattern(client: Client, text: str) -> TopicPattern | None:
    try:
        return await TopicPattern.of(client, text) if text else None
    except RefusedError:
        return None
