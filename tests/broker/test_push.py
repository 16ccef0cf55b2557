"""What is pushed when the state changes while the log is read, and who gets what came back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.broker.broker import Broker
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.partition import Partition
from receivers import consumer, receiver_of, settled, stocked

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    return await stocked(broker, 4, 3)


async def joined(broker: Broker, member: Consumer, kind: SubscriptionKind) -> Subscription:
    (topic,) = broker.topics.all()
    request = SubscribeRequest(name="sub", kind=kind, position=0)
    return await broker.subscriptions.subscribe(topic.partition(0), request, member)


async def test_what_is_acknowledged_while_it_is_read_is_not_sent(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, read = asyncio.Event(), partition.read_on

    async def slowly(*arguments: Any) -> Any:
        buffers = await read(*arguments)
        await gate.wait()
        return buffers

    monkeypatch.setattr(partition, "read_on", slowly)
    member = consumer()
    subscription = await joined(broker, member, EXCLUSIVE)
    subscription.add_permits(member, 100)
    await settled()
    await subscription.acknowledge_through(3)
    gate.set()
    await settled()
    assert receiver_of(member).offsets == [6, 9]
    assert receiver_of(member).disconnected == 0


async def test_what_a_consumer_leaves_behind_does_not_count_as_delivered(
    broker: Broker, partition: Partition
) -> None:
    first, second = consumer("1"), consumer("2")
    subscription = await joined(broker, first, SHARED)
    subscription.add_permits(first, 6)
    await settled()
    subscription.redeliver(first, {3})
    subscription.add_permits(first, 3)
    await settled()
    await joined(broker, second, SHARED)
    broker.subscriptions.leave(subscription, first)
    subscription.add_permits(second, 100)
    await settled()
    counts = [
        (each.entry.header.base_offset, each.redelivery_count)
        for each in receiver_of(second).deliveries
    ]
    assert counts == [(0, 0), (3, 1), (6, 0), (9, 0)]


async def test_the_last_consumer_takes_redelivery_counts_along(
    broker: Broker, partition: Partition
) -> None:
    first, second = consumer("1"), consumer("2")
    subscription = await joined(broker, first, SHARED)
    subscription.add_permits(first, 3)
    await settled()
    subscription.redeliver(first, None)
    broker.subscriptions.leave(subscription, first)
    await joined(broker, second, SHARED)
    subscription.add_permits(second, 3)
    await settled()
    assert [each.redelivery_count for each in receiver_of(second).deliveries] == [0]
