"""Acknowledgements of batches that nobody holds: the log says where they end, in its own time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.partition import Partition
from penstock.log import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.header import BatchHeader
from receivers import consumer, settled, stocked

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    return await stocked(broker, 4, 3)


async def subscribed(
    broker: Broker, partition: Partition, permits: int = 0, kind: SubscriptionKind = EXCLUSIVE
) -> Subscription:
    member = consumer()
    request = SubscribeRequest(name="sub", kind=kind, position=0)
    subscription = await broker.subscriptions.subscribe(partition, request, member)
    subscription.add_permits(member, permits)
    await settled()
    return subscription


class SlowLog:
    """Answers where a batch lies once its gate is open, and counts how often it was asked."""

    def __init__(self, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        self._batch_at = partition.batch_at
        monkeypatch.setattr(partition, "batch_at", self._answer)

    async def _answer(self, offset: int) -> BatchHeader | None:
        self.asked.append(offset)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return await self._batch_at(offset)


@pytest.fixture
def log(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> SlowLog:
    return SlowLog(partition, monkeypatch)


async def begun(*works: Awaitable[None]) -> list[asyncio.Future[None]]:
    tasks = [asyncio.ensure_future(work) for work in works]
    await settled()
    return tasks


async def test_what_is_out_or_came_back_needs_no_look_up(
    broker: Broker, partition: Partition, log: SlowLog
) -> None:
    subscription = await subscribed(broker, partition, permits=6, kind=SHARED)
    (member,) = subscription.consumers
    subscription.redeliver(member, {3})
    assert subscription.acknowledge_at_once(0)
    assert subscription.acknowledge_at_once(3, 0b100)
    assert subscription.cursor.position == 5
    assert not subscription.acknowledge_at_once(6)
    assert log.asked == []


async def test_a_save_waits_for_the_look_ups_before_it(
    broker: Broker, partition: Partition, log: SlowLog
) -> None:
    subscription = await subscribed(broker, partition)
    tasks = await begun(
        subscription.acknowledge(3),
        subscription.acknowledge_through(0),
        broker.subscriptions.save(subscription),
    )
    assert (log.asked, subscription.cursor.position) == ([3], 0)
    assert not any(task.done() for task in tasks)
    log.gate.set()
    await tasks[-1]
    assert (log.asked, subscription.cursor.position) == ([3, 0], 6)


async def test_a_reset_makes_what_is_looked_up_void(
    broker: Broker, partition: Partition, log: SlowLog
) -> None:
    subscription = await subscribed(broker, partition)
    tasks = await begun(subscription.acknowledge(0), subscription.acknowledge_through(6))
    reset = await begun(broker.subscriptions.reset(subscription, 3))
    log.gate.set()
    await asyncio.gather(*tasks, *reset)
    assert subscription.cursor.position == 3
    assert not list(subscription.cursor.ranges)


@pytest.mark.parametrize(
    "error", [OffsetOutOfRangeError(0, 3, 12), CorruptBatchError(0, 3, "x", 0)]
)
async def test_what_the_log_can_not_say_is_ignored(
    broker: Broker, partition: Partition, log: SlowLog, error: Exception
) -> None:
    subscription = await subscribed(broker, partition)
    log.gate.set()
    log.error = error
    await subscription.acknowledge(0)
    await subscription.acknowledge_through(3)
    assert subscription.cursor.position == 0


async def test_a_topic_that_is_deleted_meanwhile_changes_nothing(
    broker: Broker, partition: Partition, log: SlowLog
) -> None:
    subscription = await subscribed(broker, partition)
    tasks = await begun(subscription.acknowledge(0))
    await broker.topics.delete(partition.topic)
    log.gate.set()
    await asyncio.gather(*tasks)
    assert subscription.cursor.position == 0


async def test_an_exclusive_consumer_that_acknowledges_nothing_is_remembered_in_part(
    broker: Broker, partition: Partition, log: SlowLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.REMEMBERED_BATCHES", 0)
    log.gate.set()
    subscription = await subscribed(broker, partition, permits=100)
    (member,) = subscription.consumers
    assert member.unacknowledged == 0, "no lease is kept"
    assert not subscription.acknowledge_at_once(1), "no batch begins there"
    assert subscription.acknowledge_at_once(0)
    await subscription.acknowledge(6)
    assert log.asked == []
    assert (subscription.cursor.position, list(subscription.cursor.ranges)) == (3, [(6, 9)])


async def test_one_that_passes_very_many_messages_goes_in_steps(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ACKNOWLEDGED_THROUGH_AT_ONCE", 2)
    subscription = await subscribed(broker, partition)
    task = asyncio.ensure_future(subscription.acknowledge_through(9))
    found = set()
    while not task.done():
        found.add(subscription.cursor.position)
        await asyncio.sleep(0)
    assert found | {subscription.cursor.position} == {0, 2, 4, 6, 8, 12}


async def test_a_reset_ends_one_that_goes_in_steps(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ACKNOWLEDGED_THROUGH_AT_ONCE", 2)
    subscription = await subscribed(broker, partition)
    task = asyncio.ensure_future(subscription.acknowledge_through(9))
    while not subscription.cursor.position:
        await asyncio.sleep(0)
    await broker.subscriptions.reset(subscription, 1)
    await task
    assert subscription.cursor.position == 1
