"""Purges and deleted segments: what goes, what stays, and what nobody may lose by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from partition_logs import log_of
from patience import until
from penstock.broker.broker import Broker
from penstock.broker.giving_up import delete_segments, purge
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.errors import OffsetOutOfRangeError
from penstock.log.header import Magic, build_header
from receivers import consumer, message_batch, receiver_of, settled
from running import running

NAME = TopicName("public", "default", "t")
SEGMENT_BYTES = 1 << 20
IGGY = OffsetOwner("iggy-consumer", "1")
KAFKA = OffsetOwner("kafka", "group")


async def append(partition: Partition, count: int, size: int = SEGMENT_BYTES // 2) -> None:
    """Append so many batches of a message each, of which two fill a segment."""
    body = bytes(size - 61)
    for _ in range(count):
        header = build_header(Magic.KAFKA, body, record_count=1, base_timestamp=1, max_timestamp=1)
        partition.append([bytearray(header) + body])
    await partition.flushed()


async def made(broker: Broker, partitions: int = 1) -> list[Partition]:
    config = {"segment_bytes": str(SEGMENT_BYTES)}
    topic = await broker.topics.create(NAME, partitions, config=config)
    return topic.partitions


async def test_a_purge_leaves_nothing_and_gives_no_offset_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        partitions = await made(broker, 20)
        for partition in partitions[1:]:
            await append(partition, 1, size=100)
            for owner in (IGGY, KAFKA):
                await broker.offsets.commit(owner, {partition.id: CommittedOffset(1)})
        await purge(broker, broker.topics.all(), {IGGY.kind})
        for partition in partitions[1:]:
            assert (partition.start_offset, partition.readable_end()) == (1, 1)
            with pytest.raises(OffsetOutOfRangeError):
                await partition.read(0, 100, Magic.KAFKA)
        assert not broker.offsets.of_owner(IGGY)
        assert len(broker.offsets.of_owner(KAFKA)) == 19
        assert sum(partition.size_bytes for partition in partitions) == 0
    async with running(tmp_path) as broker:
        assert not broker.offsets.of_owner(IGGY)
        topic = broker.topics.get(NAME)
        assert topic is not None
        await topic.partitions[3].opened()
        assert topic.partitions[3].start_offset == 1
        await append(topic.partitions[3], 1)
        assert topic.partitions[3].end_offset == 2


async def test_a_purge_takes_what_was_written_and_not_yet_flushed(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        await append(partition, 1, size=100)
        await partition.written(partition.append(message_batch()))
        await purge(broker, broker.topics.all(), set())
        assert (partition.start_offset, partition.end_offset) == (2, 2)


async def test_full_segments_go_once_all_have_read_them(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        await append(partition, 9)
        assert log_of(partition).full_segment_ends == [2, 4, 6, 8]
        await delete_segments(broker, partition, 0)
        assert partition.start_offset == 0
        await delete_segments(broker, partition, 1)
        assert partition.start_offset == 2
        idle = SubscribeRequest("idle", SubscriptionKind.EXCLUSIVE, position=5)
        subscription = await broker.subscriptions.create(partition, idle)
        for owner, offset in ((IGGY, 6), (KAFKA, 3)):
            await broker.offsets.commit(owner, {partition.id: CommittedOffset(offset)})
        for expected in (2, 4, 6, 8, 8):
            await delete_segments(broker, partition, 1 << 32)
            assert partition.start_offset == expected
            if expected == 2:
                await broker.offsets.commit(KAFKA, {partition.id: CommittedOffset(8)})
            elif expected == 4:
                await subscription.acknowledge_through(7)
            else:
                await broker.offsets.commit(IGGY, {partition.id: CommittedOffset(9)})
        assert log_of(partition).segment_count == 1


async def test_a_purge_goes_on_where_its_client_leaves(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        await append(partition, 3)
        request = SubscribeRequest("idle", SubscriptionKind.EXCLUSIVE, position=0)
        subscription = await broker.subscriptions.create(partition, request)
        purging = asyncio.create_task(partition.trim(3))
        await asyncio.sleep(0)
        purging.cancel()
        await until(lambda: subscription.cursor.position >= 3)
        assert log_of(partition).segment_count == 1


# Cursors of subscriptions.


def subscribed(name: str) -> SubscribeRequest:
    return SubscribeRequest(name, SubscriptionKind.EXCLUSIVE, position=0)


async def append_messages(partition: Partition, *counts: int) -> None:
    for count in counts:
        partition.append(message_batch(count))
    await partition.flushed()


async def test_cursors_pass_what_is_given_up(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        await append_messages(partition, 3, 3, 3, 3)
        member = consumer()
        member.permits = 2
        subscription = await broker.subscriptions.subscribe(partition, subscribed("s"), member)
        idle = await broker.subscriptions.create(partition, subscribed("idle"))
        await subscription.acknowledge(6)
        await settled()
        await partition.trim(9)
        for each in (subscription, idle):
            assert (each.cursor.position, each.backlog) == (9, 3)
        assert member.unacknowledged == 0
        subscription.add_permits(member, 10)
        await until(lambda: receiver_of(member).offsets == [0, 9])
        await append_messages(partition, 1)
        await partition.trim(partition.readable_end())
        assert idle.backlog == 0
        subscription.send_all_away()
        await broker.subscriptions.save(idle)
    async with running(tmp_path) as broker:
        assert await position_of_idle(broker) == 13


async def test_cursors_that_a_crash_left_behind_pass_what_was_given_up(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        await append_messages(partition, 3, 3, 3)
        await broker.subscriptions.create(partition, subscribed("idle"))
        partition._trim_listeners.clear()  # As if the crash came before the cursor was written.
        await partition.trim(4)
    async with running(tmp_path) as broker:
        assert await position_of_idle(broker) == 4


async def test_a_subscription_that_is_deleted_follows_no_start(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await made(broker)
        member = consumer()
        subscription = await broker.subscriptions.subscribe(partition, subscribed("s"), member)
        await broker.subscriptions.unsubscribe(subscription, member)
        assert not partition._trim_listeners


async def position_of_idle(broker: Broker) -> int:
    topic = broker.topics.get(NAME)
    assert topic is not None
    await topic.partitions[0].opened()
    found = broker.subscriptions.get(topic.partitions[0], "idle")
    assert found is not None
    return found.cursor.position
