"""SUBSCRIBE: attach a consumer to a subscription, which comes into being with its first one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from penstock import limits, wall_clock
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.push import PUSH_BYTES
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.pulsar.client import consumer_bytes
from penstock.pulsar.consumer import PulsarConsumer
from penstock.pulsar.errors import RETRIED_SUBSCRIBE, RefusedError, refused
from penstock.pulsar.handlers.answers import (
    check_one_more,
    check_room,
    refusal,
    success,
)
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.handlers.transient import open_consumer
from penstock.pulsar.key_sharing import ranges_of, sharing_of
from penstock.pulsar.positions import position_at, position_at_time
from penstock.pulsar.schemas import check_to_read
from penstock.pulsar.topics import is_transient, open_partition
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandSubscribe, ServerError
from penstock.session import PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.broker.topics.partition import Partition
    from penstock.pulsar.client import Call, Client

RESERVED_PREFIXES: Final = ("pulsar.repl", "pulsar.dedup")

_KINDS: Final[Mapping[CommandSubscribe.SubType.ValueType, SubscriptionKind]] = {
    CommandSubscribe.Exclusive: SubscriptionKind.EXCLUSIVE,
    CommandSubscribe.Shared: SubscriptionKind.SHARED,
    CommandSubscribe.Failover: SubscriptionKind.FAILOVER,
    CommandSubscribe.Key_Shared: SubscriptionKind.KEY_SHARED,
}


@handles(BaseCommand.SUBSCRIBE, refuse=refusal)
async def handle(request: CommandSubscribe, call: Call) -> BaseCommand | None:
    client = call.client
    if is_transient(request.topic):
        await open_consumer(client, request, _check(request))
        return None
    if request.consumer_id in client.consumers:
        return success(request.request_id)
    if request.consumer_id in client.opening_consumers:
        raise RefusedError(ServerError.ServiceNotReady, "this consumer is being created")
    count = len(client.consumers) + len(client.opening_consumers)
    most = limits.PULSAR_CONNECTION_CONSUMERS
    check_one_more("consumer", count, most, request.consumer_name)
    name = request.consumer_name or secrets.token_hex(5)
    size = consumer_bytes(name, request)
    check_room("consumer", client, size + PUSH_BYTES)
    client.opening_consumers[request.consumer_id] = request
    client.held.grow(size)
    made = False
    try:
        made = await _subscribe(client, request, name, size)
    except Exception as error:
        heard = refused(error)
        if heard is not None and heard.code in RETRIED_SUBSCRIBE:
            # The C++ client would wait for ever; a closed connection makes it come back.
            raise PeerError(f"SUBSCRIBE to {request.topic} failed: {error}") from error
        raise
    finally:
        if client.opening_consumers.get(request.consumer_id) is request:
            del client.opening_consumers[request.consumer_id]
        if not made:
            client.held.grow(-size)
    return None


async def _subscribe(client: Client, request: CommandSubscribe, name: str, size: int) -> bool:
    """Attach the consumer and say so; False where nobody wants it any more."""
    kind = _check(request)
    partition = await open_partition(client, request.topic, may_create=request.force_topic_creation)
    is_used = client.all_producers.are_there(partition)
    await check_to_read(client, partition, request.schema, is_used=is_used)
    epoch = request.consumer_epoch if request.HasField("consumer_epoch") else None
    consumer = PulsarConsumer(client, request.consumer_id, partition, kind, epoch, size)
    consumer.member = Consumer(
        consumer,
        name,
        request.priority_level,
        reads_compacted=request.read_compacted,
        key_ranges=ranges_of(request, kind),
    )
    wanted = SubscribeRequest(
        name=request.subscription,
        kind=kind,
        position=await _position(partition, request),
        durable=request.durable,
        properties={pair.key: pair.value for pair in request.subscription_properties},
        sharing=sharing_of(request, kind),
    )
    subscriptions = client.broker.subscriptions
    consumer.subscription = await subscriptions.subscribe(partition, wanted, consumer.member)
    if client.is_gone or client.opening_consumers.get(consumer.id) is not request:
        subscriptions.leave(consumer.subscription, consumer.member)
        return False  # The client went, or closed the consumer, before it had it.
    client.consumers[consumer.id] = consumer
    client.send(success(request.request_id))
    client.newcomers.add(consumer.id, consumer.known)
    return True


def _check(request: CommandSubscribe) -> SubscriptionKind:
    """Return the kind of subscription, if it is one that we have."""
    size = sum(len(pair.key.encode()) + len(pair.value.encode()) for pair in request.metadata)
    if size > limits.PULSAR_CONSUMER_METADATA:
        # Pulsar's code, MetadataError, has clients wait, or try again.
        raise RefusedError(
            ServerError.NotAllowedError,
            f"a consumer's metadata has {size} bytes and {limits.PULSAR_CONSUMER_METADATA} are "
            "allowed",
        )
    kind = _KINDS[request.subType]
    if request.read_compacted and kind.is_shared:
        raise RefusedError(
            ServerError.NotAllowedError, "a compacted view is for Exclusive and Failover"
        )
    if not request.subscription or request.subscription.startswith(RESERVED_PREFIXES):
        # The code that Pulsar's broker gives, and clients take for a wrong configuration.
        raise RefusedError(
            ServerError.ProducerBusy, f"{request.subscription!r} is no name for a subscription"
        )
    return kind


async def _position(partition: Partition, request: CommandSubscribe) -> int:
    """Where the subscription begins if it is a new one."""
    if request.start_message_rollback_duration_sec:
        since = wall_clock.now_ms() - request.start_message_rollback_duration_sec * 1000
        return await position_at_time(partition, max(since, 0))
    if not request.durable and request.HasField("start_message_id"):
        return await position_at(partition, request.start_message_id)
    if request.initialPosition == CommandSubscribe.Earliest:
        return partition.start_offset
    return partition.readable_end()
