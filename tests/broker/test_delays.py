"""Messages that say from when on they are to be delivered, in each kind of subscription."""

from __future__ import annotations

from pathlib import Path

import pytest

from patience import until
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.giving_up import purge
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions import engine
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.delayed import TICK_MS
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import ATTRIBUTE_DELAYED, Magic, build_header
from penstock.pace import Pace
from pulsar_peer import entry
from receivers import consumer, receiver_of, settled
from wound_clock import NOW, WoundClock

EXCLUSIVE, SHARED = SubscriptionKind.EXCLUSIVE, SubscriptionKind.SHARED
FAILOVER = SubscriptionKind.FAILOVER


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WoundClock:
    return WoundClock.instead_of_the_real_one(monkeypatch)


@pytest.fixture
async def partition(broker: Broker, clock: WoundClock) -> Partition:
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = topic.partition(0)
    await partition.opened()
    return partition


async def write(
    partition: Partition, *delays: int | None, count: int = 1, key: str | None = None
) -> None:
    """Append an entry of `count` messages for each delay from NOW on, in ms; None is without."""
    for delay in delays:
        wanted = {} if delay is None else {"deliver_at_time": NOW + delay}
        body = entry(**wanted, **({} if key is None else {"partition_key": key}))
        header = build_header(
            Magic.PULSAR,
            body,
            record_count=count,
            base_timestamp=NOW,
            max_timestamp=NOW,
            attributes=0 if delay is None else ATTRIBUTE_DELAYED,
        )
        partition.append([header, body])
    await partition.flushed()


async def joined(
    broker: Broker, kind: SubscriptionKind = SHARED, permits: int = 100, name: str = "sub"
) -> tuple[Subscription, Consumer]:
    (topic,) = broker.topics.all()
    member = consumer()
    request = SubscribeRequest(name=name, kind=kind, position=0)
    subscription = await broker.subscriptions.subscribe(topic.partition(0), request, member)
    subscription.add_permits(member, permits)
    await settled()
    return subscription, member


async def got(member: Consumer, *offsets: int) -> None:
    """Wait until a consumer was given these, in any order, and nothing else."""
    await until(lambda: len(receiver_of(member).offsets) >= len(offsets))
    await settled()
    assert sorted(receiver_of(member).offsets) == sorted(offsets)


async def test_a_message_waits_for_its_time_and_others_pass_it(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 5_000, None, 2_000, None)
    subscription, member = await joined(broker)
    await got(member, 1, 3)
    assert (subscription.backlog, member.unacknowledged, member.permits) == (4, 2, 98)
    for offset in (1, 3):
        await subscription.acknowledge(offset)
    assert subscription.cursor.position == 0
    clock.ms += 2_000 - 1
    await settled()
    await got(member, 1, 3)
    clock.ms += 1
    await got(member, 1, 2, 3)
    clock.ms += 3_000
    await got(member, 0, 1, 2, 3)
    assert {each.redelivery_count for each in receiver_of(member).deliveries} == {0}
    for offset in (0, 2):
        await subscription.acknowledge(offset)
    assert (subscription.cursor.position, subscription.backlog) == (4, 0)


async def test_one_without_a_tick_of_its_own_is_up_to_a_tick_late(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 1)
    _, member = await joined(broker)
    clock.ms += TICK_MS - 1
    await settled()
    assert not receiver_of(member).offsets
    clock.ms += 1
    await got(member, 0)


@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER])
async def test_who_needs_them_in_order_has_them_at_once(
    broker: Broker, partition: Partition, kind: SubscriptionKind
) -> None:
    await write(partition, 5_000, None, 1 << 60)
    _, member = await joined(broker, kind)
    await got(member, 0, 1, 2)


async def test_another_kind_of_subscription_treats_them_in_its_own_way(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, None)
    subscription, shared = await joined(broker)
    await got(shared, 1)
    broker.subscriptions.leave(subscription, shared)
    _, exclusive = await joined(broker, EXCLUSIVE)
    await got(exclusive, 0, 1)
    assert receiver_of(exclusive).offsets == [0, 1]
    clock.ms += 299
    await settled()
    broker.subscriptions.leave(subscription, exclusive)
    _, shared = await joined(broker)
    await got(shared, 1)
    broker.subscriptions.leave(subscription, shared)
    _, exclusive = await joined(broker, EXCLUSIVE, permits=0)
    clock.ms += 1_000
    subscription.add_permits(exclusive, 100)
    await got(exclusive, 0, 1)
    assert receiver_of(exclusive).offsets == [0, 1]


async def test_odd_times_are_times(broker: Broker, partition: Partition, clock: WoundClock) -> None:
    last = (1 << 63) - 1 - NOW
    await write(partition, -NOW + 1, 0, last, -1)
    _, member = await joined(broker)
    await got(member, 0, 1, 3)


async def test_what_was_due_while_nobody_came_is_delivered_in_order(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 900, 600, 300, None, 1_000_000)
    subscription, member = await joined(broker, permits=1)
    await got(member, 3)
    clock.ms += 1_000
    await settled()
    subscription.add_permits(member, 100)
    await got(member, 0, 1, 2, 3)
    assert receiver_of(member).offsets == [3, 0, 1, 2]


async def test_a_batch_is_delivered_whole(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, 300, count=3)
    subscription, member = await joined(broker)
    await subscription.acknowledge(0, open_mask=0b101)
    clock.ms += 300
    await got(member, 0, 3)
    masks = [
        (each.entry.header.base_offset, each.open_mask) for each in receiver_of(member).deliveries
    ]
    assert masks == [(0, 0b101), (3, None)]


async def test_what_is_acknowledged_before_its_time_is_never_delivered(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, 300, 300, None)
    subscription, member = await joined(broker)
    await subscription.acknowledge(1)
    assert subscription.backlog == 3
    clock.ms += 300
    await got(member, 0, 2, 3)
    await subscription.pass_below(4)
    assert subscription.cursor.position == 4


async def test_a_change_of_consumers_delivers_nothing_early_or_twice(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, None, 700)
    subscription, first = await joined(broker)
    await got(first, 1)
    await subscription.acknowledge(1)
    broker.subscriptions.leave(subscription, first)
    clock.ms += 300
    _, second = await joined(broker)
    await got(second, 0)
    assert receiver_of(second).deliveries[0].redelivery_count == 0
    _, third = await joined(broker)
    broker.subscriptions.leave(subscription, second)
    await got(third, 0)
    clock.ms += 400
    await got(third, 0, 2)


async def test_what_came_back_does_not_wait_again(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, 600)
    subscription, member = await joined(broker)
    clock.ms += 300
    await got(member, 0)
    subscription.redeliver(member, None)
    await got(member, 0, 0)
    assert [each.redelivery_count for each in receiver_of(member).deliveries] == [0, 1]
    clock.ms += 300
    await got(member, 0, 0, 1)
    assert receiver_of(member).deliveries[-1].redelivery_count == 0


async def test_a_seek_begins_anew_and_waits_again(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, None, 700)
    subscription, member = await joined(broker)
    clock.ms += 300
    await got(member, 0, 1)
    async with subscription.changing:
        subscription.begin_reset(0)
        subscription.end_reset()
    _, member = await joined(broker)
    await got(member, 0, 1)
    clock.ms += 400
    await got(member, 0, 1, 2)


async def test_a_restart_forgets_no_time(tmp_path: Path, clock: WoundClock) -> None:
    broker = await Broker.open(tmp_path / "data", BrokerSettings())
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    await topic.partition(0).opened()
    await write(topic.partition(0), 300, None, 700)
    subscription, member = await joined(broker)
    await got(member, 1)
    await subscription.acknowledge(1)
    await broker.close()
    broker = await Broker.open(tmp_path / "data", BrokerSettings())
    (topic,) = broker.topics.all()
    await topic.partition(0).opened()
    _, member = await joined(broker)
    clock.ms += 300
    await got(member, 0)
    clock.ms += 400
    await got(member, 0, 2)
    await broker.close()


async def test_an_aborted_acknowledgement_brings_nothing_early(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:

    await write(partition, 300, 300, 300, None)
    subscription, member = await joined(broker)
    await got(member, 3)
    for _ in range(3):
        subscription.hold(7, 1, 2)
        await subscription.give_back_held(7, Pace())
        await settled()
    await got(member, 3)
    clock.ms += 300
    await got(member, 0, 1, 2, 3)
    subscription.hold(7, 1, 2)
    list(subscription.committing_held(7))
    assert subscription.backlog == 3


@pytest.mark.parametrize("no_memory", [False, True])
async def test_at_the_bound_no_more_is_read_before_some_is_due(
    broker: Broker,
    partition: Partition,
    clock: WoundClock,
    monkeypatch: pytest.MonkeyPatch,
    no_memory: bool,
) -> None:
    monkeypatch.setattr(limits, "DELAYED_LEAST_RUNS", 3)
    if no_memory:
        broker.memory.subscriptions.bound = 0
    else:
        monkeypatch.setattr(limits, "DELAYED_RUNS", 3)
    await write(partition, 100, None, 300, None, 500, None, 700, None)
    subscription, member = await joined(broker)
    await got(member, 1, 3)
    clock.ms += 100
    await got(member, 0, 1, 3, 5)
    clock.ms += 200
    await got(member, 0, 1, 2, 3, 5, 7)
    clock.ms += 400
    await got(member, *range(8))
    broker.subscriptions.leave(subscription, member)
    assert broker.memory.subscriptions.used == 0


async def test_a_clock_that_is_set_back_holds_messages_back(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, 600)
    subscription, member = await joined(broker, permits=0)
    clock.ms += 300
    await settled()
    clock.ms -= 300
    subscription.add_permits(member, 100)
    await settled()
    assert not receiver_of(member).offsets
    clock.ms += 10_000
    await got(member, 0, 1)


async def test_very_many_that_are_due_at_once_come_in_their_order(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    count = 3_000
    await write(partition, *(1_000 - number % 7 for number in range(count)))
    subscription, member = await joined(broker, permits=count)
    await until(lambda: subscription._engine.fresh == count)
    clock.ms += 1_000
    await got(member, *range(count))
    assert receiver_of(member).offsets == list(range(count))


async def test_what_is_too_old_before_its_time_is_never_delivered(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 60_000, None, 90_000)
    subscription, member = await joined(broker)
    await got(member, 1)
    (topic,) = broker.topics.all()
    broker.retention.now_ms = lambda: NOW + 30_000
    await broker.topics.configure(topic, lambda _: {"message_ttl_ms": "10000"})
    await broker.retention.check()
    assert (subscription.backlog, subscription.cursor.position) == (0, 3)
    await write(partition, None)
    clock.ms += 100_000
    await got(member, 1, 3)
    broker.subscriptions.leave(subscription, member)
    assert broker.memory.subscriptions.used == 0


async def test_given_up_before_its_time_it_is_never_delivered(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, None, 300, 600)
    subscription, member = await joined(broker)
    await got(member, 1)
    await partition.trim(1)
    assert (subscription.backlog, subscription.cursor.position) == (3, 1)
    clock.ms += 300
    await got(member, 1, 2)
    await purge(broker, broker.topics.all(), ())
    assert (subscription.backlog, subscription.cursor.position) == (0, 4)
    clock.ms += 300
    await write(partition, None)
    await got(member, 1, 2, 4)


async def test_a_backlog_counts_what_is_not_due(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, None, count=5)
    subscription, member = await joined(broker)
    await got(member, 5)
    assert (subscription.backlog, member.unacknowledged) == (10, 5)
    await subscription.acknowledge(5)
    assert (subscription.backlog, member.unacknowledged) == (5, 0)
    broker.subscriptions.leave(subscription, member)
    assert subscription.backlog == 5
    _, member = await joined(broker)
    clock.ms += 300
    await got(member, 0)
    await subscription.acknowledge(0)
    assert subscription.backlog == 0


async def test_compaction_takes_out_what_waits_and_what_is_left_comes_at_its_time(
    broker: Broker, partition: Partition, clock: WoundClock
) -> None:
    await write(partition, 300, key="a")
    await write(partition, 600, key="b")
    await write(partition, 300, 600, key="a")
    subscription, member = await joined(broker)
    await until(lambda: subscription._engine.fresh == 4)
    (topic,) = broker.topics.all()
    asked = {"cleanup_policy": "compact", "compaction_requested_ms": str(NOW)}
    broker.compaction.now_ms = lambda: NOW + 60_000
    await broker.topics.configure(topic, lambda _: asked)
    await broker.compaction.check()
    clock.ms += 599
    await settled()
    await got(member)
    clock.ms += 1
    await got(member, 1, 3)
    for offset in (1, 3):
        await subscription.acknowledge(offset)
    assert (subscription.backlog, subscription.cursor.position) == (0, 4)


async def test_what_a_transaction_gives_back_at_its_time_is_delivered_once(
    broker: Broker, partition: Partition, clock: WoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_DUE_AHEAD", 1)
    monkeypatch.setattr(engine, "_DUE_BEHIND", 1)
    await write(partition, 300, 300, 300)
    subscription, member = await joined(broker)
    await until(lambda: subscription._engine.fresh == 3)
    subscription.hold(7, 2, 3)
    clock.ms += 300
    await subscription.give_back_held(7, Pace())
    await got(member, 0, 1, 2)
    assert receiver_of(member).offsets == [2, 0, 1]
