"""GET_TOPICS_OF_NAMESPACE: the names that a client with a pattern chooses from."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from fastcrc.crc32 import iscsi as crc32c

from penstock.broker.topics.names import NamespaceName
from penstock.pace import Pace
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import refusal
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import pulsar_names
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    ServerError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.topic import Topic
    from penstock.pulsar.client import Call


_SORTED_AT_ONCE: Final = 500


@handles(BaseCommand.GET_TOPICS_OF_NAMESPACE, refuse=refusal)
async def handle(request: CommandGetTopicsOfNamespace, call: Call) -> BaseCommand:
    tenant, slash, namespace = request.namespace.partition("/")
    if not (tenant and slash and namespace) or "/" in namespace:
        raise RefusedError(
            ServerError.NotAllowedError, f"{request.namespace!r}: write tenant/namespace"
        )
    names: list[str] = []
    if request.mode != CommandGetTopicsOfNamespace.NON_PERSISTENT:
        topics = call.broker.topics.in_namespace(NamespaceName(tenant, namespace))
        names = await _sorted_names(topics)
    found = topics_hash(names)
    changed = not request.topics_hash or request.topics_hash != found
    response = CommandGetTopicsOfNamespaceResponse(
        request_id=request.request_id,
        topics_hash=found,
        changed=changed,
    )
    if changed:
        await Pace().each(names, response.topics.append)
    return BaseCommand(
        type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=response
    )


async def _sorted_names(topics: Iterable[Topic]) -> list[str]:
    pace = Pace()
    names = await pace.each(
        (name for topic in topics for name in pulsar_names(topic)), lambda name: name
    )
    parts = range(0, len(names), _SORTED_AT_ONCE)
    in_order = await pace.each(parts, lambda first: sorted(names[first : first + _SORTED_AT_ONCE]))
    return await pace.each(heapq.merge(*in_order), lambda name: name)


def topics_hash(names: Iterable[str]) -> str:
    """Return Pulsar's hash of a list of topics: the CRC-32C, its lowest byte written first."""
    checksum: int = crc32c(",".join(sorted(names)).encode())
    return checksum.to_bytes(4, "little").hex()
