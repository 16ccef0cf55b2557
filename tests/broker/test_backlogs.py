"""Goal: what nobody acknowledges in time counts as acknowledged, or holds producers up, as the
topic says: Pulsar's TTL and backlog quotas."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from aged_logs import DAY_MS, NODE, NOW_MS, SEGMENT, SIZE, append, configure, days, made
from penstock.broker.broker import Broker
from penstock.broker.retention.backlog import Backlogs
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.partition import Partition
from penstock.log.header import Magic, build_header
from running import running


async def subscribed(
    broker: Broker, partition: Partition, name: str, position: int, *, durable: bool = True
) -> Subscription:
    request = SubscribeRequest(name, SubscriptionKind.SHARED, position, durable=durable)
    return await broker.subscriptions.create(partition, request)


async def test_what_is_too_old_is_acknowledged_in_every_subscription(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.broker.retention")
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, message_ttl_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, days(*range(9, 1, -1), *[0.5] * 4))
        old = await subscribed(broker, partition, "old", 0)
        reader = await subscribed(broker, partition, "reader", 3, durable=False)
        ahead = await subscribed(broker, partition, "ahead", 10)
        await old.acknowledge(5)
        await broker.retention.check()
        assert [each.cursor.position for each in (old, reader, ahead)] == [8, 8, 10]
        assert caplog.messages == [
            "t-0: 7 messages of subscription old are acknowledged, for they are too old",
            "t-0: 5 messages of subscription reader are acknowledged, for they are too old",
        ]
        assert partition.start_offset == 0
        rates = [each.expired.a_second(time.monotonic()) for each in (old, reader, ahead)]
        assert rates[0] > rates[1] > rates[2] == 0
        broker.retention.now_ms = lambda: NOW_MS + DAY_MS
        await broker.retention.check()
        assert [each.cursor.position for each in (old, reader, ahead)] == [12, 12, 12]
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        positions = {
            each.name: each.cursor.position for each in broker.subscriptions.of_partition(partition)
        }
        assert positions == {"old": 12, "ahead": 12}


async def test_exactly_what_is_too_old_is(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, 20, message_ttl_ms=DAY_MS)
        subscriptions = []
        for expired, partition in enumerate(topic.partitions):
            await append(partition, days(*[2] * expired, *[0] * (19 - expired)))
            subscriptions.append(await subscribed(broker, partition, "s", 0))
        await broker.retention.check()
        assert [each.cursor.position for each in subscriptions] == list(range(20))


async def test_the_age_of_a_pulsar_message_is_that_since_it_was_published(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, message_ttl_ms=DAY_MS)
        (partition,) = topic.partitions
        for published_ms, event_ms in ((NOW_MS - 2 * DAY_MS, NOW_MS), (NOW_MS, 1)):
            header = build_header(
                Magic.PULSAR,
                b"m",
                record_count=1,
                base_timestamp=published_ms,
                max_timestamp=event_ms,
            )
            partition.append([header, b"m"])
        await partition.flushed()
        subscription = await subscribed(broker, partition, "s", 0)
        await broker.retention.check()
        assert subscription.cursor.position == 1


async def test_what_has_expired_can_be_deleted(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(
            broker, message_ttl_ms=DAY_MS, retention_ms=0, retention_unacknowledged="keep"
        )
        (partition,) = topic.partitions
        await append(partition, days(9, 9, 9, 9, 0))
        await subscribed(broker, partition, "s", 1)
        await broker.retention.check()
        assert partition.start_offset == 4
    async with running(tmp_path, NODE) as broker:
        broker.retention.now_ms = lambda: NOW_MS + 2 * DAY_MS
        (partition,) = broker.topics.all()[0].partitions
        await broker.retention.check()  # Of a closed log, which is opened for it.
        await broker.retention.check()
        assert partition.start_offset == 5


async def test_a_backlog_is_measured_from_the_slowest_durable_subscription(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, backlog_quota_bytes=5 * SIZE, backlog_quota_ms=DAY_MS)
        (partition,) = topic.partitions
        backlogs: Backlogs = broker.retention.backlogs
        held: list[Partition] = []
        backlogs.on_excess(held.append)
        await append(partition, days(*[0.5] * 9))
        await subscribed(broker, partition, "reader", 0, durable=False)
        assert await backlogs.excess(partition) == ""
        slow = await subscribed(broker, partition, "slow", 3)
        await subscribed(broker, partition, "quick", 9)
        assert await backlogs.excess(partition) == (
            "3000 bytes are not acknowledged; backlog_quota_bytes is 2500"
        )
        await broker.retention.check()
        assert held == [partition]
        assert slow.cursor.position == 3
        await slow.acknowledge(3)
        assert await backlogs.excess(partition) == ""
        broker.retention.now_ms = lambda: NOW_MS + DAY_MS
        assert (await backlogs.excess(partition)).startswith("a message of 129600000 ms ago")
        await slow.acknowledge_through(8)
        assert await backlogs.excess(partition) == ""


async def test_the_oldest_messages_go_for_a_quota_that_evicts(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(
            broker,
            backlog_quota_bytes=2 * SEGMENT,
            backlog_quota_policy="consumer_backlog_eviction",
        )
        (partition,) = topic.partitions
        await append(partition, days(*[5] * 3, *[0.5] * 8))
        slow = await subscribed(broker, partition, "slow", 1)
        quick = await subscribed(broker, partition, "quick", 10)
        reader = await subscribed(broker, partition, "reader", 0, durable=False)
        await broker.retention.check()
        assert [each.cursor.position for each in (slow, quick, reader)] == [8, 10, 0]
        await configure(
            broker,
            topic,
            backlog_quota_ms=DAY_MS,
            backlog_quota_policy="consumer_backlog_eviction",
        )
        behind = await subscribed(broker, partition, "behind", 0)
        await broker.retention.check()
        assert behind.cursor.position == 3
