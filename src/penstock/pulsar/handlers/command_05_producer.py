"""PRODUCER: announce a producer of one partition under a name that nobody else has there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from penstock import limits, records
from penstock.broker.errors import TopicTerminatedError
from penstock.broker.retention.policy import QuotaPolicy
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.pulsar.client import producer_bytes
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import (
    check_one_more,
    check_room,
    is_cpp,
    refusal,
)
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.handlers.transient import open_producer
from penstock.pulsar.producers import Producer
from penstock.pulsar.schemas import version_to_write
from penstock.pulsar.topics import is_transient, open_partition
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandProducer,
    CommandProducerSuccess,
    ServerError,
)

if TYPE_CHECKING:
    import asyncio

    from penstock.broker.topics.partition import Partition
    from penstock.pulsar.client import Call, Client


_BEYOND_WHAT_WAITS: Final = 1 << 32
"""More messages than a client has that wait for their receipts."""


_OVER_QUOTA: Final = {
    QuotaPolicy.HOLD: ServerError.ProducerBlockedQuotaExceededError,
    QuotaPolicy.EXCEPTION: ServerError.ProducerBlockedQuotaExceededException,
}


@handles(BaseCommand.PRODUCER, refuse=refusal)
async def handle(request: CommandProducer, call: Call) -> BaseCommand | None:
    client = call.client
    if is_transient(request.topic):
        return await open_producer(client, request)
    known = client.producers.get(request.producer_id)
    if known is not None:
        return _success(request.request_id, known)
    if request.producer_id in client.opening_producers:
        raise RefusedError(ServerError.ServiceNotReady, "this producer is being created")
    count = len(client.producers) + len(client.opening_producers)
    most = limits.PULSAR_CONNECTION_PRODUCERS
    check_one_more("producer", count, most, request.producer_name)
    name = request.producer_name or client.all_producers.new_name()
    size = producer_bytes(name)
    check_room("producer", client, size)
    client.opening_producers[request.producer_id] = request
    client.held.grow(size)
    producer = None
    try:
        producer = await _open(client, request, name)
    finally:
        if client.opening_producers.get(request.producer_id) is request:
            del client.opening_producers[request.producer_id]
        if producer is None:
            client.held.grow(-size)
    return None if producer is None else _opened(client, request.request_id, producer)


async def _open(client: Client, request: CommandProducer, name: str) -> Producer | None:
    """Let the producer in; None where nobody wants it any more."""
    partition = await open_partition(client, request.topic)
    if partition.topic.config.terminated:
        raise TopicTerminatedError(f"{request.topic} was terminated, and takes no more messages")
    await _refuse_over_quota(client, partition)
    await records.prepare()  # For the look at each message, which is not to wait for it.
    if request.HasField("initial_subscription_name"):
        await _create_subscription(client, partition, request.initial_subscription_name)
    producer = Producer(
        id=request.producer_id,
        name=name,
        partition=partition,
        owner=client,
        mode=request.producer_access_mode,
        schema_version=await version_to_write(client, partition.topic, request.schema),
        topic_epoch=request.topic_epoch if request.HasField("topic_epoch") else None,
        name_is_ours=not (request.producer_name and request.user_provided_producer_name),
    )
    await client.all_producers.add(producer)
    try:
        producer.last_sequence = await _last_sequence(client, request, producer)
        if not request.epoch and not producer.name_is_ours:
            producer.come_with = producer.last_sequence
    except BaseException:
        client.all_producers.remove(producer)
        raise
    if client.is_gone or client.opening_producers.get(producer.id) is not request:
        client.all_producers.remove(producer)
        return None  # The client went, or closed the producer, before it had it.
    client.producers[producer.id] = producer
    return producer


async def _refuse_over_quota(client: Client, partition: Partition) -> None:
    """Let no producer in while a subscription is too far behind, if that is the topic's policy.

    On the one code a client tries again, on the other it fails what it has to send.
    """
    policy = partition.topic.config.retention.backlog.policy
    if policy is QuotaPolicy.EVICTION:
        return
    if excess := await client.broker.retention.backlogs.excess(partition):
        raise RefusedError(_OVER_QUOTA[policy], excess)


async def _last_sequence(client: Client, request: CommandProducer, producer: Producer) -> int:
    """Return where the producer goes on numbering its messages, once that many are durable."""
    partition = producer.partition
    last = partition.producers.named.last(producer.key)
    if not partition.topic.config.deduplication:
        return -1
    sequence = -1
    if last is not None:
        await partition.durable(last.offset)
        sequence = last.sequence
    if request.producer_name and producer.name_is_ours and is_cpp(client):
        # A client that comes back before it has a receipt begins to number anew behind this one,
        # and would give numbers again that messages have which it is about to send again.
        sequence += _BEYOND_WHAT_WAITS
    return sequence


def _opened(client: Client, request_id: int, producer: Producer) -> BaseCommand:
    # The request itself is not kept for one that waits.
    if not producer.ready.done():
        announce = partial(_announce, client, request_id, producer)
        producer.ready.add_done_callback(announce)
    return _success(request_id, producer)


async def _create_subscription(client: Client, partition: Partition, name: str) -> None:
    """Have the first message kept for a reader to come: dead letter topics begin so."""
    subscriptions = client.broker.subscriptions
    if name and subscriptions.get(partition, name) is None:
        beginning = SubscribeRequest(
            name=name, kind=SubscriptionKind.EXCLUSIVE, position=partition.start_offset
        )
        await subscriptions.create(partition, beginning)


def _success(request_id: int, producer: Producer) -> BaseCommand:
    made = CommandProducerSuccess(
        request_id=request_id,
        producer_name=producer.name,
        last_sequence_id=producer.last_sequence,
        schema_version=producer.schema_version,
        topic_epoch=producer.topic_epoch,
        producer_ready=producer.ready.done(),
    )
    return BaseCommand(type=BaseCommand.PRODUCER_SUCCESS, producer_success=made)


def _announce(
    client: Client,
    request_id: int,
    producer: Producer,
    ready: asyncio.Future[None],
) -> None:
    # The second answer to the same request: the producer's turn has come.
    if not ready.cancelled() and client.producers.get(producer.id) is producer:
        client.send(_success(request_id, producer))
