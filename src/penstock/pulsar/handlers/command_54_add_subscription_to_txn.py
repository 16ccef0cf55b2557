"""ADD_SUBSCRIPTION_TO_TXN: messages of subscriptions are about to be acknowledged in a
transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import open_partition
from penstock.pulsar.transactions import answer, part_of, producer_of, refusing
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAddSubscriptionToTxn,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.pulsar.client import Call
    from penstock.pulsar.wire import pulsar_api_pb2 as api


@handles(
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN,
    refuse=refusing(BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE),
)
async def handle(request: CommandAddSubscriptionToTxn, call: Call) -> BaseCommand:
    producer = producer_of(request)
    for each in request.subscription:
        subscription = await _found(call, each)
        await call.broker.transactions.add_name("", producer, part_of(subscription))
    return answer(request, BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE)


async def _found(call: Call, named: api.Subscription) -> Subscription:
    partition = await open_partition(call.client, named.topic, may_create=False)
    subscription = call.broker.subscriptions.get(partition, named.subscription)
    if subscription is None:
        raise RefusedError(
            ServerError.SubscriptionNotFound, f"{named.topic} has no such subscription"
        )
    return subscription
