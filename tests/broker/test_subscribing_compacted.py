"""Goal: compaction takes messages out of batches that a subscription stands in the middle of, and
nobody gets what is gone, misses what is left, or keeps a backlog that nobody can acknowledge.

Method: entries of five messages, of which the second and the fourth have newer ones behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log import LogConfig
from penstock.log.header import Magic
from penstock.pulsar.positions import entry_before, last_message_id, position_at
from penstock.pulsar.wire.pulsar_api_pb2 import MessageIdData
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from receivers import consumer, receiver_of, shown
from running import running
from stored_batches import (
    TIME,
    Record,
    batched,
    entry,
    iggy_batch,
    iggy_body,
    kafka_batch,
    metadata,
    pulsar_batch,
)

NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)
KEYS = ("a", "b", "c", "d", "e")
LEFT = {0: b"a0", 2: b"c0", 4: b"e0", 5: b"b1", 6: b"d1"}
"""The offsets of what is left, and the messages there."""


def of_pulsar(values: list[str]) -> bytes:
    messages = [
        (SingleMessageMetadata(payload_size=0, partition_key=each[0]), each.encode())
        for each in values
    ]
    said = metadata(num_messages_in_batch=len(values))
    return pulsar_batch(entry(said, batched(messages)), count=len(values))


def of_kafka(values: list[str]) -> bytes:
    return kafka_batch([Record(each.encode(), each[:1].encode()) for each in values])


def of_iggy(values: list[str]) -> bytes:
    records = [Record(each.encode(), each[:1].encode()) for each in values]
    return iggy_batch(iggy_body(records), count=len(values))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running(tmp_path, NODE) as broker:
        broker.compaction.now_ms = lambda: TIME // 1000 + 60_000
        yield broker


@pytest.fixture(params=[of_pulsar, of_kafka, of_iggy])
async def partition(broker: Broker, request: pytest.FixtureRequest) -> Partition:
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = topic.partitions[0]
    for values in ([f"{key}0" for key in KEYS], ["b1", "d1"]):
        partition.append([bytearray(request.param(values))])
    await partition.flushed()
    return partition


async def compact(broker: Broker) -> None:
    (topic,) = broker.topics.all()
    asked = {"cleanup_policy": "compact", "compaction_requested_ms": str(TIME // 1000)}
    await broker.topics.configure(topic, lambda _: topic.config.explicit | asked)
    await broker.compaction.check()


async def subscribed(broker: Broker, partition: Partition) -> Subscription:
    request = SubscribeRequest("s", SubscriptionKind.SHARED, 0)
    return await broker.subscriptions.create(partition, request)


async def came(subscription: Subscription) -> Consumer:
    """Return a new consumer that has got all that there is."""
    member = consumer()
    subscription.attach(member, SubscriptionKind.SHARED, Magic.PULSAR, AS_THEY_SPREAD)
    subscription.add_permits(member, 100)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while max(LEFT) not in shown(member):
            await asyncio.sleep(0.001)
    return member


async def test_a_consumer_gets_what_is_left_and_acknowledges_all(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    subscription = await subscribed(broker, partition)
    member = await came(subscription)
    assert shown(member) == LEFT
    assert member.permits == 100 - len(LEFT)
    for offset in receiver_of(member).offsets:
        await subscription.acknowledge(offset)
    assert (subscription.backlog, subscription.cursor.position) == (0, 7)


async def test_what_was_out_before_is_acknowledged_by_its_old_id(
    broker: Broker, partition: Partition
) -> None:
    subscription = await subscribed(broker, partition)
    member = await came(subscription)
    assert receiver_of(member).offsets == [0, 5]
    await compact(broker)
    await subscription.acknowledge(0, 0b11010)
    assert subscription.backlog == 5
    await subscription.acknowledge(0)
    await subscription.acknowledge(5)
    assert subscription.backlog == 0


async def test_a_cursor_in_the_middle_of_a_batch_goes_on_there(
    broker: Broker, partition: Partition
) -> None:
    subscription = await subscribed(broker, partition)
    member = await came(subscription)
    await subscription.acknowledge(0, 0b11100)
    await subscription.acknowledge(0, 0b01111)
    subscription.detach(member)
    await compact(broker)
    member = await came(subscription)
    assert shown(member) == {offset: LEFT[offset] for offset in (2, 5, 6)}
    assert member.permits == 100 - 3
    await subscription.acknowledge_through(2)
    await subscription.acknowledge(2)
    assert subscription.cursor.position == 5


async def test_an_old_id_after_that_acknowledges_nothing_that_it_did_not_name(
    broker: Broker, partition: Partition
) -> None:
    subscription = await subscribed(broker, partition)
    subscription.detach(await came(subscription))
    await compact(broker)
    member = await came(subscription)
    await subscription.acknowledge(0, 0b11110)
    await subscription.acknowledge(1, 0b0)
    await subscription.acknowledge(3)
    assert subscription.backlog == len(LEFT) - 1
    subscription.detach(member)
    member = await came(subscription)
    assert shown(member) == {offset: LEFT[offset] for offset in (2, 4, 5, 6)}


async def test_who_acknowledges_once_more_acknowledges_nothing_else(
    broker: Broker, partition: Partition
) -> None:
    subscription = await subscribed(broker, partition)
    await compact(broker)
    member = await came(subscription)
    await subscription.acknowledge(0)
    for gone in (0, 1):
        await subscription.acknowledge(gone)
    subscription.detach(member)
    assert shown(await came(subscription)) == {at: LEFT[at] for at in LEFT if at}


async def test_message_ids_name_what_is_left(
    broker: Broker, partition: Partition, request: pytest.FixtureRequest
) -> None:
    make = request.node.callspec.params["partition"]
    partition.append([bytearray(make(["f0", "g0", "h0", "g1"]))])
    await partition.flushed()
    await compact(broker)
    last = await last_message_id(partition)
    assert last.entryId + max(last.batch_index, 0) == 10
    for offset in (7, 8, 9):
        named = MessageIdData(ledgerId=partition.id, entryId=offset)
        assert await position_at(partition, named) == offset
    assert await entry_before(partition, 9) == 8
    assert await entry_before(partition, 8) == 7
