"""Answers that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock import limits
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandError,
    CommandSuccess,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call, Client
    from penstock.pulsar.consumer import PulsarConsumer


def success(request_id: int) -> BaseCommand:
    return BaseCommand(type=BaseCommand.SUCCESS, success=CommandSuccess(request_id=request_id))


def refusal(request: Any, code: ServerError.ValueType, message: str) -> BaseCommand:
    """The refusal of every request that has none of its own."""
    return BaseCommand(
        type=BaseCommand.ERROR,
        error=CommandError(request_id=request.request_id, error=code, message=message),
    )


def consumer_of(call: Call, consumer_id: int) -> PulsarConsumer:
    """Return a consumer of this connection. Raises RefusedError."""
    consumer = call.client.consumers.get(consumer_id)
    if consumer_id in call.client.transient_consumers:
        raise RefusedError(
            ServerError.NotAllowedError, "a non-persistent topic keeps nothing to look at"
        )
    if consumer is None:
        raise RefusedError(ServerError.MetadataError, f"consumer {consumer_id} not found")
    return consumer


def is_cpp(client: Client) -> bool:
    """Whether it is the client of C++, or those of Python and Node around it."""
    return client.client_version.startswith("Pulsar-CPP")


def check_one_more(kind: str, count: int, most: int, name: str) -> None:
    """Refuse a consumer or a producer (its `kind`) beyond `most` of a connection, of which `count`
    are there, and one with too long a name.
    """
    if count >= most:
        raise RefusedError(ServerError.NotAllowedError, f"the connection has {count} {kind}s")
    longest = limits.PULSAR_CLIENT_NAME
    if len(name) > longest:
        raise RefusedError(
            ServerError.NotAllowedError, f"a {kind}'s name has at most {longest} characters"
        )


def check_room(kind: str, client: Client, size: int) -> None:
    """Refuse a consumer or a producer (its `kind`) for which the node has no memory."""
    if not client.has_room(size):
        raise RefusedError(
            ServerError.NotAllowedError,
            f"there is no memory for one more {kind} of this connection",
        )
