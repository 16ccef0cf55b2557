"""Goal: consumers that acknowledge nothing make a broker hold no more than its budget has for them,
and those that do acknowledge go on beside them.
"""

from __future__ import annotations

import pytest

from penstock.broker.broker import Broker
from penstock.broker.errors import NoMemoryError
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.partition import Partition
from penstock.limits import HOLDER_LEAST_LEASES, KIB
from receivers import consumer, receiver_of, settled, stocked

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED
BATCHES = 200
MESSAGES = 600
"""Of a batch: no two share a lease."""
ROOM = 30 * KIB


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    broker.memory.subscriptions.bound = ROOM
    return await stocked(broker, BATCHES, MESSAGES)


async def joined(
    broker: Broker, name: str, member: Consumer, kind: SubscriptionKind = SHARED
) -> Subscription:
    (topic,) = broker.topics.all()
    request = SubscribeRequest(name, kind, 0)
    found = await broker.subscriptions.subscribe(topic.partition(0), request, member)
    found.add_permits(member, 10**9)
    await settled()
    return found


async def acknowledge_all(subscription: Subscription, member: Consumer) -> None:
    """Acknowledge what comes, as it comes, until nothing comes any more."""
    deliveries = receiver_of(member).deliveries
    while deliveries:
        for delivery in deliveries:
            assert subscription.acknowledge_at_once(delivery.entry.header.base_offset)
        deliveries.clear()
        await settled()


async def test_consumers_that_acknowledge_nothing_share_what_there_is(
    broker: Broker, partition: Partition
) -> None:
    hogs = [consumer(str(number)) for number in range(20)]
    for number, hog in enumerate(hogs):
        await joined(broker, f"hog {number}", hog)
    out = [len(hog.leases) for hog in hogs]
    assert max(out) < BATCHES / 2
    assert min(out) >= HOLDER_LEAST_LEASES
    assert max(out[1:]) < HOLDER_LEAST_LEASES + 20, "a turn's batches"


async def test_who_acknowledges_goes_on(broker: Broker, partition: Partition) -> None:
    hog, lazy, good = consumer("hog"), consumer("lazy"), consumer("good")
    first = await joined(broker, "first", hog)
    held = len(hog.leases)
    assert held < BATCHES / 2
    broker.memory.subscriptions.bound = 0
    second = await joined(broker, "second", lazy)
    assert len(lazy.leases) == len(hog.leases) - held + 20, "a turn's batches and no more"
    await joined(broker, "second", good)
    await acknowledge_all(second, good)
    assert second.cursor.acknowledged_above == (BATCHES - len(lazy.leases)) * MESSAGES
    # What the lazy one has comes back when it leaves, and when it gives it back.
    broker.subscriptions.leave(second, lazy)
    await settled()
    await acknowledge_all(second, good)
    assert second.cursor.position == BATCHES * MESSAGES
    assert len(hog.leases) == held
    await acknowledge_all(first, hog)
    assert first.cursor.position == BATCHES * MESSAGES
    assert broker.memory.subscriptions.used == 0


async def test_a_subscription_that_waits_goes_on_when_another_gives_back(
    broker: Broker, partition: Partition
) -> None:
    hog, waiting = consumer("hog"), consumer("waiting")
    first = await joined(broker, "first", hog)
    await joined(broker, "second", waiting)
    held = len(waiting.leases)
    await acknowledge_all(first, hog)
    assert len(waiting.leases) > held


async def test_an_exclusive_consumer_may_acknowledge_all_at_the_end(
    broker: Broker, partition: Partition
) -> None:
    broker.memory.subscriptions.bound = 0
    member = consumer()
    subscription = await joined(broker, "all", member, EXCLUSIVE)
    offsets = receiver_of(member).offsets
    assert len(offsets) == BATCHES
    for offset in reversed(offsets):
        await subscription.acknowledge(offset)
    assert subscription.cursor.position == BATCHES * MESSAGES


async def test_what_was_not_delivered_is_not_acknowledged_without_memory(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.CURSOR_LEAST_BYTES", 10 * 320)
    broker.memory.subscriptions.bound = 0
    subscription = await broker.subscriptions.create(partition, SubscribeRequest("s", SHARED, 0))

    async def acknowledge_every_second() -> None:
        for number in range(BATCHES - 1, 0, -2):
            await subscription.acknowledge(number * MESSAGES)

    with pytest.raises(NoMemoryError):
        await acknowledge_every_second()
    assert subscription.cursor.used_bytes <= 12 * 320


async def test_a_deleted_subscription_gives_all_back(broker: Broker, partition: Partition) -> None:
    await joined(broker, "s", consumer())
    assert broker.memory.subscriptions.used > 0
    await broker.topics.delete(partition.topic)
    await settled()
    assert broker.memory.subscriptions.used == 0
