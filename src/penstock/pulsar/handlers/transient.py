"""What producers and consumers of non-persistent topics ask for."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from penstock import limits
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.pulsar.client import consumer_bytes, producer_bytes
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import (
    check_one_more,
    check_room,
    success,
)
from penstock.pulsar.key_sharing import ranges_of, sharing_of
from penstock.pulsar.schemas import refuse_schema
from penstock.pulsar.topics import check_transient
from penstock.pulsar.transient import TransientConsumer
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandProducer,
    CommandProducerSuccess,
    CommandSubscribe,
    ProducerAccessMode,
    ServerError,
)
from penstock.records import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.pulsar.client import Client


RequestT = TypeVar("RequestT", CommandProducer, CommandSubscribe)


async def open_producer(client: Client, request: CommandProducer) -> BaseCommand | None:
    """Answer a PRODUCER."""
    _check_topic(client, request.topic)
    refuse_schema(request.schema)
    if request.producer_access_mode != ProducerAccessMode.Shared:
        raise RefusedError(
            ServerError.NotAllowedError,
            "a non-persistent topic has no producers that have it alone",
        )
    count = len(client.producers) + len(client.transient_producers)
    name = request.producer_name or client.all_producers.new_name()
    check_one_more("producer", count, limits.PULSAR_CONNECTION_PRODUCERS, name)
    check_room("producer", client, producer_bytes(name))
    if request.producer_id not in client.transient_producers:
        with _opening(client, client.opening_producers, request.producer_id, request) as is_wanted:
            made = await client.transient_topics.add_producer(request.topic, name, client)
        if not is_wanted():
            client.transient_topics.remove_producer(made)
            return None  # The client went, closed it, or asked again, before it had it.
        client.transient_producers[request.producer_id] = made
        client.held.grow(producer_bytes(name))
    made_success = CommandProducerSuccess(
        request_id=request.request_id,
        producer_name=client.transient_producers[request.producer_id].name,
        schema_version=b"",
    )
    return BaseCommand(type=BaseCommand.PRODUCER_SUCCESS, producer_success=made_success)


async def open_consumer(client: Client, request: CommandSubscribe, kind: SubscriptionKind) -> None:
    """Answer a SUBSCRIBE."""
    _check_topic(client, request.topic)
    refuse_schema(request.schema)
    count = len(client.consumers) + len(client.transient_consumers)
    name = request.consumer_name or secrets.token_hex(5)
    check_one_more("consumer", count, limits.PULSAR_CONNECTION_CONSUMERS, name)
    size = consumer_bytes(name, request)
    check_room("consumer", client, size)
    if request.consumer_id in client.transient_consumers:
        client.send(success(request.request_id))
        return
    if kind is SubscriptionKind.KEY_SHARED or request.keySharedMeta.hashRanges:
        await prepare()
    topics = client.transient_topics
    made = TransientConsumer(
        request.consumer_id,
        name,
        request.priority_level,
        client,
        size=size,
        key_ranges=ranges_of(request, kind),
    )
    sharing = sharing_of(request, kind)
    with _opening(client, client.opening_consumers, made.id, request) as is_wanted:
        await topics.add_consumer(request.topic, request.subscription, kind, sharing, made)
    if not is_wanted():
        topics.remove_consumer(made)
        return  # The client went, closed it, or asked again, before it had it.
    client.transient_consumers[made.id] = made
    client.held.grow(size)
    client.send(success(request.request_id))
    client.newcomers.add(made.id, made.known)


@contextmanager
def _opening(
    client: Client, opening: dict[int, RequestT], number: int, request: RequestT
) -> Iterator[Callable[[], bool]]:
    """Note that a request is being answered; yield what says whether it is still wanted then."""
    opening[number] = request
    wanted = False
    try:
        yield lambda: wanted and not client.is_gone
    finally:
        # Else the client closed it, or asked again.
        wanted = opening.get(number) is request
        if wanted:
            del opening[number]


def _check_topic(client: Client, name: str) -> None:
    check_transient(name)
    if name not in client.transient_topics and not client.broker.settings.auto_create_topics:
        raise RefusedError(ServerError.TopicNotFound, f"there is no topic {name}")
