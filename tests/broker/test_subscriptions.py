"""Subscriptions on a real log and a real database, without any protocol."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from partition_logs import open_logs
from patience import until
from penstock.broker.broker import Broker
from penstock.broker.errors import (
    ConsumerBusyError,
    SubscriptionBusyError,
    SubscriptionModeError,
)
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.selectors import one_active
from penstock.broker.subscriptions.subscription import (
    NEXT_STATE,
    Subscription,
    SubscriptionEvent,
    SubscriptionKind,
    SubscriptionState,
)
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from receivers import consumer, message_batch, receiver_of, settled

EXCLUSIVE = SubscriptionKind.EXCLUSIVE
SHARED = SubscriptionKind.SHARED
FAILOVER = SubscriptionKind.FAILOVER
NAME = TopicName("public", "default", "t")


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = await Broker.open(tmp_path, BrokerSettings())
    await broker.topics.create(NAME, 2)
    yield broker
    await broker.close()


def partition_of(broker: Broker, index: int = 0) -> Partition:
    topic = broker.topics.get(NAME)
    assert topic is not None
    return topic.partition(index)


@pytest.fixture
def partition(broker: Broker) -> Partition:
    return partition_of(broker)


async def joined(
    broker: Broker,
    member: Consumer,
    kind: SubscriptionKind = EXCLUSIVE,
    *,
    durable: bool = True,
    index: int = 0,
) -> Subscription:
    request = SubscribeRequest(name="sub", kind=kind, position=0, durable=durable)
    return await broker.subscriptions.subscribe(partition_of(broker, index), request, member)


async def append(partition: Partition, *counts: int) -> None:
    for count in counts:
        partition.append(message_batch(count))
    await partition.flushed()


async def reopened(broker: Broker, tmp_path: Path) -> Broker:
    await broker.close()
    again = await Broker.open(tmp_path, BrokerSettings())
    await open_logs(again)
    return again


# What the state machine allows.


def test_every_state_knows_what_it_refuses() -> None:
    allowed = {
        (state.name, event.name)
        for state, event in itertools.product(SubscriptionState, SubscriptionEvent)
        if (state, event) in NEXT_STATE
    }
    assert allowed == {
        ("IDLE", "CONSUMER_CAME"),
        ("IDLE", "RESET_BEGAN"),
        ("IDLE", "WAS_DELETED"),
        ("SERVING", "CONSUMER_CAME"),
        ("SERVING", "LAST_CONSUMER_LEFT"),
        ("RESETTING", "RESET_ENDED"),
        ("RESETTING", "WAS_DELETED"),
        ("DELETED", "RESET_ENDED"),
        ("DELETED", "WAS_DELETED"),
    }
    assert {NEXT_STATE[key] for key in NEXT_STATE if key[1] is SubscriptionEvent.WAS_DELETED} == {
        SubscriptionState.DELETED
    }


async def test_a_subscription_without_consumers_may_change_its_kind(broker: Broker) -> None:
    first = consumer()
    subscription = await joined(broker, first)
    with pytest.raises(ConsumerBusyError):
        await joined(broker, consumer(), SHARED)
    broker.subscriptions.leave(subscription, first)
    assert (await joined(broker, consumer(), SHARED)).kind is SHARED


async def test_durable_and_fleeting_do_not_mix(broker: Broker) -> None:
    await joined(broker, consumer())
    with pytest.raises(SubscriptionModeError):
        await joined(broker, consumer(), durable=False)


async def test_a_dead_consumer_makes_room(broker: Broker) -> None:
    dead, heir = consumer(alive=False), consumer()
    await joined(broker, dead)
    subscription = await joined(broker, heir)
    assert receiver_of(dead).disconnected == 1
    assert subscription.consumers == [heir]


# Durability.


async def test_cursors_are_read_back(broker: Broker, tmp_path: Path, partition: Partition) -> None:
    await append(partition, 3, 3, 3)
    member = consumer()
    subscription = await joined(broker, member)
    await subscription.acknowledge(0)
    await subscription.acknowledge(6, open_mask=0b010)
    broker.subscriptions.leave(subscription, member)
    again = await reopened(broker, tmp_path)
    found = again.subscriptions.get(partition_of(again), "sub")
    assert found is not None
    assert (found.cursor.position, list(found.cursor.ranges)) == (3, [(6, 7), (8, 9)])
    assert again.subscriptions.of_partition(partition_of(again, 1)) == []
    await again.close()


async def test_messages_that_a_crash_took_back_are_not_acknowledged(
    broker: Broker, tmp_path: Path, partition: Partition
) -> None:
    """Delivered and acknowledged, but never flushed: their offsets are given again."""
    await append(partition, 1, 1)
    member = consumer()
    subscription = await joined(broker, member)
    subscription.cursor.acknowledge_below(5)
    subscription.cursor.acknowledge(7, 9)
    await broker.subscriptions.save(subscription)
    broker.subscriptions.leave(subscription, member)
    for _ in range(2):  # The second start finds what the first one stored.
        broker = await reopened(broker, tmp_path)
        found = broker.subscriptions.get(partition_of(broker), "sub")
        assert found is not None
        assert (found.cursor.position, list(found.cursor.ranges)) == (2, [])
    await broker.close()


async def test_saves_that_wait_together_are_written_together(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(partition, *[1] * 100)
    subscription = await joined(broker, consumer())
    writes = 0
    save = broker.subscriptions._cursors._repository.save

    async def counted(*arguments: object) -> None:
        nonlocal writes
        writes += 1
        await save(*arguments)

    monkeypatch.setattr(broker.subscriptions._cursors._repository, "save", counted)

    async def acknowledge(offset: int) -> None:
        await subscription.acknowledge(offset)
        await broker.subscriptions.save(subscription)

    await asyncio.gather(*(acknowledge(offset) for offset in range(100)))
    assert subscription.cursor.position == 100
    assert writes <= 2


async def test_a_fleeting_subscription_ends_with_its_last_consumer(
    broker: Broker, partition: Partition
) -> None:
    member = consumer()
    subscription = await joined(broker, member, durable=False)
    broker.subscriptions.leave(subscription, member)
    assert broker.subscriptions.get(partition, "sub") is None


async def test_a_fleeting_subscription_outlives_its_reset(
    broker: Broker, partition: Partition
) -> None:
    await append(partition, 1, 1, 1)
    first, again = consumer(), consumer()
    subscription = await joined(broker, first, durable=False)
    await broker.subscriptions.reset(subscription, 2)
    assert receiver_of(first).disconnected == 1
    assert await joined(broker, again, durable=False) is subscription
    assert subscription.cursor.position == 2


async def test_who_subscribes_during_a_reset_waits_for_it(
    broker: Broker, partition: Partition
) -> None:
    await append(partition, 1, 1, 1)
    subscription = await joined(broker, consumer())
    reset = asyncio.ensure_future(broker.subscriptions.reset(subscription, 2))
    await asyncio.sleep(0)
    assert subscription.state is SubscriptionState.RESETTING
    member = consumer()
    await joined(broker, member)
    assert reset.done()
    subscription.add_permits(member, 10)
    await settled()
    assert receiver_of(member).offsets == [2]


async def test_only_the_last_consumer_unsubscribes(broker: Broker, partition: Partition) -> None:
    first, second = consumer(), consumer()
    subscription = await joined(broker, first, SHARED)
    await joined(broker, second, SHARED)
    with pytest.raises(SubscriptionBusyError):
        await broker.subscriptions.unsubscribe(subscription, first)
    await broker.subscriptions.unsubscribe(subscription, first, force=True)
    assert receiver_of(second).disconnected == 1
    assert broker.subscriptions.get(partition, "sub") is None


async def test_a_deleted_topic_takes_its_subscriptions_along(
    broker: Broker, tmp_path: Path, partition: Partition
) -> None:
    await append(partition, 1)
    member = consumer()
    subscription = await joined(broker, member)
    await subscription.acknowledge(0)
    await broker.topics.delete(partition.topic)
    assert receiver_of(member).disconnected == 1
    assert subscription.state is SubscriptionState.DELETED
    await broker.topics.create(NAME, 2)
    assert broker.subscriptions.get(partition_of(broker), "sub") is None


# Acknowledgements.


@pytest.mark.parametrize("offset", [-1, 1, 2, 9, 10**18])
async def test_an_acknowledgement_of_no_batch_is_ignored(
    broker: Broker, partition: Partition, offset: int
) -> None:
    await append(partition, 3, 3, 3)
    subscription = await joined(broker, consumer())
    await subscription.acknowledge(offset)
    assert subscription.cursor.position == 0
    assert not list(subscription.cursor.ranges)


@pytest.mark.parametrize(("offset", "position"), [(-1, 0), (0, 3), (2, 3), (5, 6), (9, 0)])
async def test_a_cumulative_one_means_the_batch_around_it(
    broker: Broker, partition: Partition, offset: int, position: int
) -> None:
    await append(partition, 3, 3, 3)
    subscription = await joined(broker, consumer())
    await subscription.acknowledge_through(offset)
    assert subscription.cursor.position == position


async def test_the_backlog_counts_messages(broker: Broker, partition: Partition) -> None:
    await append(partition, 3, 3, 3)
    subscription = await joined(broker, consumer())
    await subscription.acknowledge(3, open_mask=0b001)
    assert subscription.backlog == 7


# Exclusive and Failover.


async def test_acknowledgements_lower_what_a_consumer_holds(
    broker: Broker, partition: Partition
) -> None:
    await append(partition, 3, 3, 3)
    member = consumer()
    subscription = await joined(broker, member)
    subscription.add_permits(member, 100)
    await settled()
    assert (member.unacknowledged, member.permits) == (9, 91)
    await subscription.acknowledge(3, open_mask=0b100)
    assert member.unacknowledged == 7
    await subscription.acknowledge_through(3, open_mask=0b100)
    assert member.unacknowledged == 4
    await subscription.acknowledge_through(6)
    assert member.unacknowledged == 0


async def test_a_slow_connection_is_not_pushed(broker: Broker, partition: Partition) -> None:
    member = consumer()
    subscription = await joined(broker, member)
    subscription.add_permits(member, 100)
    receiver_of(member).close_gate()
    await append(partition, 1)
    await settled()
    await append(partition, 1, 1)
    await settled()
    assert receiver_of(member).offsets == [0]
    receiver_of(member).open_gate()
    await settled()
    assert receiver_of(member).offsets == [0, 1, 2]


async def test_failover_waits_for_the_acknowledgements_of_a_living_predecessor(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_active, "FAILOVER_DELAY_SECONDS", 0.05)
    partition = partition_of(broker, 1)
    await append(partition, 1, 1, 1)
    first, second = consumer("a"), consumer("b")
    subscription = await joined(broker, first, FAILOVER, index=1)
    subscription.add_permits(first, 10)
    await settled()
    assert receiver_of(first).offsets == [0, 1, 2]
    await joined(broker, second, FAILOVER, index=1)  # Partition 1 of two consumers: "b".
    assert receiver_of(first).activations == [True, False]
    assert receiver_of(second).activations == [True]
    subscription.add_permits(second, 10)
    await settled()
    assert receiver_of(second).offsets == []
    await subscription.acknowledge_through(1)  # On its way when the turn changed.
    await until(lambda: receiver_of(second).offsets)
    assert receiver_of(second).offsets == [2]


async def test_failover_does_not_wait_for_the_dead(broker: Broker) -> None:
    partition = partition_of(broker, 1)
    await append(partition, 1, 1)
    first, second = consumer("a"), consumer("b")
    subscription = await joined(broker, first, FAILOVER, index=1)
    await joined(broker, second, FAILOVER, index=1)
    subscription.add_permits(first, 10)
    broker.subscriptions.leave(subscription, second)
    await settled()
    assert receiver_of(first).offsets == [0, 1]
    assert receiver_of(first).activations == [True, False, True]


async def test_failover_prefers_priority_over_names(broker: Broker) -> None:
    low, high = consumer("a", priority=1), consumer("z", priority=0)
    await joined(broker, low, FAILOVER)
    await joined(broker, high, FAILOVER)
    assert receiver_of(low).activations == [True, False]
    assert receiver_of(high).activations == [True]


async def test_a_read_that_fails_sends_consumers_away_and_lets_them_come_back(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(partition, 1)
    first, again = consumer(), consumer()
    subscription = await joined(broker, first)

    async def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(partition, "read_on", fail)
        subscription.add_permits(first, 1)
        await settled()
    assert receiver_of(first).disconnected == 1
    assert subscription.state is SubscriptionState.IDLE
    await joined(broker, again)
    subscription.add_permits(again, 1)
    await settled()
    assert receiver_of(again).offsets == [0]


# Shared.


async def test_turns_go_round(broker: Broker, partition: Partition) -> None:
    members = [consumer(str(number)) for number in range(3)]
    for member in members:
        subscription = await joined(broker, member, SHARED)
        subscription.add_permits(member, 1000)
    await append(partition, *[1] * 120)
    await settled()
    assert [len(receiver_of(member).offsets) for member in members] == [40, 40, 40]


async def test_a_lower_priority_gets_what_the_higher_has_no_permits_for(
    broker: Broker, partition: Partition
) -> None:
    high, low = consumer("h", priority=0), consumer("l", priority=1)
    # The lower one is first in turn, but for its priority.
    subscription = await joined(broker, low, SHARED)
    await joined(broker, high, SHARED)
    subscription.add_permits(high, 5)
    subscription.add_permits(low, 100)
    await append(partition, *[1] * 8)
    await settled()
    assert receiver_of(high).offsets == [0, 1, 2, 3, 4]
    assert receiver_of(low).offsets == [5, 6, 7]


async def test_what_comes_back_goes_first_and_counts(broker: Broker, partition: Partition) -> None:
    first, second = consumer("1"), consumer("2")
    subscription = await joined(broker, first, SHARED)
    await append(partition, *[2] * 6)
    subscription.add_permits(first, 8)
    await settled()
    assert receiver_of(first).offsets == [0, 2, 4, 6]
    subscription.redeliver(first, {6, 2, 99, 3})
    assert first.unacknowledged == 4
    await joined(broker, second, SHARED)
    subscription.add_permits(second, 100)
    await settled()
    counts = [(d.entry.header.base_offset, d.redelivery_count) for d in _given(second)]
    assert counts == [(2, 1), (6, 1), (8, 0), (10, 0)]
    subscription.redeliver(first, {2})  # No longer its own.
    await settled()
    assert len(_given(second)) == 4


async def test_what_is_acknowledged_while_it_waits_does_not_go_out_again(
    broker: Broker, partition: Partition
) -> None:
    member = consumer()
    subscription = await joined(broker, member, SHARED)
    await append(partition, 2, 2)
    subscription.add_permits(member, 4)
    await settled()
    subscription.redeliver(member, None)
    await subscription.acknowledge(0)
    await subscription.acknowledge(2, open_mask=0b10)
    subscription.add_permits(member, 4)
    await settled()
    again = _given(member)[2:]
    assert [(d.entry.header.base_offset, d.open_mask) for d in again] == [(2, 0b10)]
    assert member.permits == 3


async def test_who_holds_too_many_gets_no_more_until_half_are_done(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.UNACKNOWLEDGED_MESSAGES", 4)
    member = consumer()
    subscription = await joined(broker, member, SHARED)
    subscription.add_permits(member, 1000)
    for _ in range(10):
        await append(partition, 1)
        await settled()
    assert receiver_of(member).offsets == [0, 1, 2, 3]
    await subscription.acknowledge(0)
    await subscription.acknowledge(1)
    await settled()
    assert len(receiver_of(member).offsets) == 4
    await subscription.acknowledge(2)
    await settled()
    assert len(receiver_of(member).offsets) > 4


async def test_one_slow_consumer_holds_up_nobody(broker: Broker, partition: Partition) -> None:
    slow, quick = consumer("s"), consumer("q")
    subscription = await joined(broker, slow, SHARED)
    await joined(broker, quick, SHARED)
    subscription.add_permits(slow, 1000)
    subscription.add_permits(quick, 1000)
    receiver_of(slow).close_gate()
    for _ in range(10):
        await append(partition, 1)
        await settled()
    assert len(receiver_of(slow).offsets) == 1
    assert len(receiver_of(quick).offsets) == 9


def _given(member: Consumer) -> list:
    return receiver_of(member).deliveries
