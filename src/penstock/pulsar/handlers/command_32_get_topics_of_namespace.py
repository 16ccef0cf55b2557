"""GET_TOPICS_OF_NAMESPACE: the names that a client with a pattern chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastcrc.crc32 import iscsi as crc32c

from penstock.broker.topics.names import NamespaceName
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

    from penstock.pulsar.client import Call


@handles(BaseCommand.GET_TOPICS_OF_NAMESPACE, refuse=refusal)
def handle(request: CommandGetTopicsOfNamespace, call: Call) -> BaseCommand:
    tenant, slash, namespace = request.namespace.partition("/")
    if not (tenant and slash and namespace) or "/" in namespace:
        raise RefusedError(
            ServerError.NotAllowedError, f"{request.namespace!r}: write tenant/namespace"
        )
    names: list[str] = []
    if request.mode != CommandGetTopicsOfNamespace.NON_PERSISTENT:
        topics = call.broker.topics.in_namespace(NamespaceName(tenant, namespace))
        names = sorted(name for topic in topics for name in pulsar_names(topic))
    found = topics_hash(names)
    changed = not request.topics_hash or request.topics_hash != found
    response = CommandGetTopicsOfNamespaceResponse(
        request_id=request.request_id,
        topics=names if changed else [],
        topics_hash=found,
        changed=changed,
    )
    return BaseCommand(
        type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=response
    )


def topics_hash(names: Iterable[str]) -> str:
    """Return Pulsar's hash of a list of topics: the CRC-32C, its lowest byte written first."""
    checksum: int = crc32c(",".join(sorted(names)).encode())
    return checksum.to_bytes(4, "little").hex()
