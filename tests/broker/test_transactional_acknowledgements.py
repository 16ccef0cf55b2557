"""Acknowledgements in transactions take effect as a whole with the decision, also over a crash."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock import pace
from penstock.broker.broker import Broker
from penstock.broker.errors import NoMemoryError, TransactionConflictError
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.layout import DATABASE_FILE
from receivers import consumer, message_batch, receiver_of, settled

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED
ONE, OTHER = 7, 8
"""Ids of producers, by which transactions are known."""
SIZE = 3


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = await Broker.open(tmp_path / "before", BrokerSettings())
    await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = partition_of(broker)
    await partition.opened()
    for _ in range(5):
        partition.append(message_batch(SIZE))
    await partition.flushed()
    yield broker
    await broker.close()


def partition_of(broker: Broker) -> Partition:
    (topic,) = broker.topics.all()
    return topic.partition(0)


async def subscribed(
    broker: Broker, kind: SubscriptionKind, permits: int = 100
) -> tuple[Subscription, Consumer]:
    member = consumer()
    request = SubscribeRequest(name="sub", kind=kind, position=0)
    subscription = await broker.subscriptions.subscribe(partition_of(broker), request, member)
    subscription.add_permits(member, permits)
    await settled()
    return subscription, member


async def taken(member: Consumer, count: int) -> list[tuple[int, int | None]]:
    """What a consumer was given since the last time: offsets of batches, and what is open."""
    receiver = receiver_of(member)
    async with asyncio.timeout(30):
        while len(receiver.deliveries) < count:
            await asyncio.sleep(0.001)  # It is read in a thread.
    await settled()
    deliveries, receiver.deliveries = receiver.deliveries, []
    return [(each.entry.header.base_offset, each.open_mask) for each in deliveries]


async def offsets(member: Consumer, *expected: int) -> None:
    assert [offset for offset, _ in await taken(member, len(expected))] == [*expected]


async def hold(broker: Broker, subscription: Subscription, producer_id: int, *batches: int) -> None:
    for number in batches:
        subscription.hold(producer_id, number * SIZE, (number + 1) * SIZE)
    await broker.subscriptions.transactional.save(subscription, producer_id)


async def decide(broker: Broker, producer_id: int, *, committed: bool) -> None:
    participant = broker.subscriptions.transactional
    await broker._store.write(*participant.outcome(producer_id, committed=committed))
    participant.decided(producer_id, committed=committed)
    await settled()


async def after_a_crash(broker: Broker, folder: Path) -> Broker:
    """Open what is on the disk now, while the first broker still runs."""
    shutil.copytree(broker.data_folder, folder, ignore=shutil.ignore_patterns("*lock"))
    return await Broker.open(folder, BrokerSettings())


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
async def test_an_abort_has_messages_delivered_again_and_no_others(
    broker: Broker, kind: SubscriptionKind
) -> None:
    subscription, member = await subscribed(broker, kind)
    await offsets(member, 0, 3, 6, 9, 12)
    await hold(broker, subscription, ONE, 1, 3)
    await hold(broker, subscription, OTHER, 2)
    assert member.unacknowledged == 6
    await decide(broker, ONE, committed=False)
    await offsets(member, 3, 9)
    assert member.unacknowledged == 12
    await decide(broker, OTHER, committed=True)
    await offsets(member)
    assert list(subscription.cursor.ranges) == [(6, 9)]


@pytest.mark.parametrize("committed", [True, False])
async def test_an_end_in_many_subscriptions_goes_in_steps(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    monkeypatch.setattr(pace, "_STEP_SECONDS", 0)
    subscriptions = []
    for number in range(140):
        request, member = SubscribeRequest(f"sub {number}", SHARED, position=0), consumer()
        joining = broker.subscriptions.subscribe(partition_of(broker), request, member)
        subscriptions.append(await joining)
        subscriptions[-1].add_permits(member, SIZE)
        await offsets(member, 0)
        await hold(broker, subscriptions[-1], ONE, 0)
    participant = broker.subscriptions.transactional
    await broker._store.write(*participant.outcome(ONE, committed=committed))
    participant.decided(ONE, committed=committed)
    await asyncio.sleep(0)
    assert any(each.pending for each in subscriptions)
    async with asyncio.timeout(30):
        while any(each.pending for each in subscriptions):
            await asyncio.sleep(0)
    assert {each.cursor.position for each in subscriptions} == {SIZE if committed else 0}


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
async def test_what_is_pending_goes_to_nobody(broker: Broker, kind: SubscriptionKind) -> None:
    subscription, member = await subscribed(broker, kind)
    await hold(broker, subscription, ONE, 0, 4)
    subscription.hold(ONE, 3, 6, open_mask=0b101)
    broker.subscriptions.leave(subscription, member)
    again, other = await subscribed(broker, kind)
    assert again is subscription
    assert await taken(other, 3) == [(3, 0b101), (6, None), (9, None)]
    assert other.unacknowledged == 8


async def test_part_of_a_batch_comes_back_with_what_is_open_of_it(broker: Broker) -> None:
    subscription, member = await subscribed(broker, SHARED)
    await offsets(member, 0, 3, 6, 9, 12)
    subscription.hold(ONE, 0, 3, open_mask=0b110)
    subscription.hold(OTHER, 0, 3, open_mask=0b101)
    await hold(broker, subscription, ONE)
    await decide(broker, ONE, committed=False)
    assert await taken(member, 1) == [(0, 0b101)]
    assert member.unacknowledged == 14


async def test_a_message_is_acknowledged_in_one_transaction(broker: Broker) -> None:
    subscription, _ = await subscribed(broker, SHARED)
    subscription.hold(ONE, 0, 3, open_mask=0b110)
    subscription.hold(ONE, 0, 3, open_mask=0b110)
    subscription.hold(OTHER, 0, 3, open_mask=0b101)
    with pytest.raises(TransactionConflictError, match="another open transaction"):
        subscription.hold(OTHER, 0, 3)
    await subscription.acknowledge(3)
    await subscription.acknowledge(6, 0b011)
    with pytest.raises(TransactionConflictError, match="acknowledged already"):
        subscription.hold(ONE, 3, 6)
    with pytest.raises(TransactionConflictError, match="acknowledged already"):
        subscription.hold(ONE, 6, 9, open_mask=0b010)
    subscription.hold(ONE, 6, 9)
    assert list(subscription.pending.runs_of(ONE)) == [(0, 1), (6, 8)]


async def test_a_cumulative_acknowledgement_is_of_one_transaction(broker: Broker) -> None:
    subscription, member = await subscribed(broker, EXCLUSIVE)
    await offsets(member, 0, 3, 6, 9, 12)
    await hold(broker, subscription, OTHER, 3)
    for _ in subscription.holding_through(ONE, 6, 9, open_mask=0b110):
        pass
    assert list(subscription.pending.runs_of(ONE)) == [(0, 7)]
    with pytest.raises(TransactionConflictError):
        list(subscription.holding_through(OTHER, 9, 12))
    with pytest.raises(TransactionConflictError):
        list(subscription.holding_through(ONE, 12, 15))
    await hold(broker, subscription, ONE)
    await decide(broker, ONE, committed=False)
    await offsets(member, 0, 3, 6)
    for _ in subscription.holding_through(ONE, 6, 9):
        pass
    await decide(broker, OTHER, committed=True)
    await hold(broker, subscription, ONE)
    await decide(broker, ONE, committed=True)
    assert subscription.cursor.position == 12


async def test_each_cumulative_acknowledgement_goes_on_where_the_last_one_ended(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, _ = await subscribed(broker, EXCLUSIVE)
    looked_at: list[int] = []
    open_count = Cursor.open_count

    def counted(cursor: Cursor, start: int, end: int) -> int:
        looked_at.append(start)
        return open_count(cursor, start, end)

    monkeypatch.setattr(Cursor, "open_count", counted)
    for start in range(0, 100 * BLOCK, BLOCK):
        list(subscription.holding_through(ONE, start, start + SIZE))
    assert list(subscription.pending.runs_of(ONE)) == [(0, 99 * BLOCK + SIZE)]
    assert len(looked_at) < 3 * 100
    subscription.pending.remove(ONE, 5, 8)  # As what could not be saved is given back.
    list(subscription.holding_through(ONE, 100 * BLOCK, 100 * BLOCK + SIZE))
    assert list(subscription.pending.runs_of(ONE)) == [(0, 100 * BLOCK + SIZE)]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("when_open", [True, False])
async def test_what_is_pending_outlives_a_crash(
    broker: Broker, tmp_path: Path, committed: bool, when_open: bool
) -> None:
    subscription, _ = await subscribed(broker, SHARED)
    subscription.hold(ONE, 0, 3, open_mask=0b100)
    await hold(broker, subscription, ONE, 2)
    after = await after_a_crash(broker, tmp_path / "after")
    if when_open:
        await partition_of(after).opened()
        again, member = await subscribed(after, SHARED)
        assert await taken(member, 4) == [(0, 0b100), (3, None), (9, None), (12, None)]
        await decide(after, ONE, committed=committed)
        await offsets(member, *(() if committed else (0, 6)))
    else:
        await decide(after, ONE, committed=committed)
        await partition_of(after).opened()
        again, member = await subscribed(after, SHARED)
        await offsets(member, *((0, 3, 9, 12) if committed else (0, 3, 6, 9, 12)))
    assert again.cursor.position == (2 if committed else 0)
    await after.close()
    assert not rows_of(tmp_path / "after")
    reopened = await Broker.open(tmp_path / "after", BrokerSettings())
    await partition_of(reopened).opened()
    again, _ = await subscribed(reopened, SHARED)
    assert list(again.cursor.ranges) == ([(6, 9)] if committed else [])
    assert again.cursor.position == (2 if committed else 0)
    await reopened.close()


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / DATABASE_FILE)) as connection:
        return connection.execute("SELECT * FROM pending_acknowledgements").fetchall()


async def test_a_decision_outlives_a_crash_before_the_cursor_is_saved(
    broker: Broker, tmp_path: Path
) -> None:
    subscription, _ = await subscribed(broker, SHARED)
    await hold(broker, subscription, ONE, 0, 2)
    await hold(broker, subscription, OTHER, 1)
    participant = broker.subscriptions.transactional
    await broker._store.write(
        *participant.outcome(ONE, committed=True), *participant.outcome(OTHER, committed=False)
    )
    after = await after_a_crash(broker, tmp_path / "after")
    await partition_of(after).opened()
    again, member = await subscribed(after, SHARED)
    await offsets(member, 3, 9, 12)
    assert again.cursor.position == 3
    assert list(again.cursor.ranges) == [(6, 9)]
    await after.close()
    assert not rows_of(tmp_path / "after")


async def test_a_subscription_that_moves_keeps_what_is_pending(
    broker: Broker, tmp_path: Path
) -> None:
    subscription, _ = await subscribed(broker, SHARED)
    await hold(broker, subscription, ONE, 0)
    await hold(broker, subscription, OTHER, 3)
    await decide(broker, ONE, committed=True)
    await broker.subscriptions.reset(subscription, 0)
    assert [row[2] for row in rows_of(broker.data_folder)] == [OTHER]
    _, member = await subscribed(broker, SHARED)
    await offsets(member, 0, 3, 6, 12)
    await decide(broker, OTHER, committed=True)
    assert list(subscription.cursor.ranges) == [(9, 12)]


async def test_what_is_pending_goes_with_its_subscription(broker: Broker) -> None:
    subscription, member = await subscribed(broker, SHARED)
    await hold(broker, subscription, ONE, 0)
    await broker.subscriptions.unsubscribe(subscription, member)
    assert not rows_of(broker.data_folder)
    again, _ = await subscribed(broker, SHARED)
    await decide(broker, ONE, committed=True)
    assert again.cursor.position == 0
    assert not list(again.cursor.ranges)


async def test_far_and_wide_is_refused_where_there_is_no_memory(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, _ = await subscribed(broker, SHARED)
    monkeypatch.setattr("penstock.limits.PENDING_LEAST_BLOCKS", 0)
    broker.memory.subscriptions.take(broker.memory.subscriptions.bound)
    with pytest.raises(NoMemoryError):
        subscription.hold(ONE, 0, 3)
    broker.memory.subscriptions.take(-broker.memory.subscriptions.bound)
    subscription.hold(ONE, 0, 3)
