"""Goal: what a topic's settings say is due goes, whatever protocol said it, and nothing else does.

Method: segments of a few batches with times of the test's own, and a clock that the test turns.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aged_logs import DAY_MS, NAME, NODE, NOW_MS, SEGMENT, SIZE, append, configure, days, made
from partition_logs import log_of
from patience import until
from penstock.broker.broker import Broker
from penstock.broker.retention.reserve import RESERVE_FILE
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.storage import Storage
from penstock.limits import RESERVE_BYTES
from penstock.log import LogFailedError, LogWriteError
from penstock.log.segment import Segment
from running import running


async def subscribed(broker: Broker, partition: Partition, position: int) -> Subscription:
    request = SubscribeRequest("s", SubscriptionKind.EXCLUSIVE, position)
    return await broker.subscriptions.create(partition, request)


async def test_whole_segments_go_by_the_age_of_their_latest_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.broker.retention")
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, days(5, 4, 3, 0.5, 2, 2))
        await broker.retention.check()
        assert partition.start_offset == 2
        assert log_of(partition).segment_count == 2
        assert caplog.messages == [
            "t-0 begins at offset 2 now: 1 segments of 1000 bytes went, 1 by retention_ms"
        ]
        assert broker.retention.deleted == {"retention_ms": 1, "bytes": SEGMENT}
        await broker.retention.check()
        assert partition.start_offset == 2
        broker.retention.now_ms = lambda: NOW_MS + DAY_MS
        await broker.retention.check()
        assert (partition.start_offset, partition.end_offset, partition.size_bytes) == (6, 6, 0)
        await append(partition, days(0))
        assert partition.end_offset == 7
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        assert partition.start_offset == 6


async def test_a_message_is_kept_to_the_very_last_millisecond(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, [DAY_MS + 2, DAY_MS])
        await broker.retention.check()
        assert partition.start_offset == 0
        broker.retention.now_ms = lambda: NOW_MS + 1
        await broker.retention.check()
        assert partition.start_offset == 2


async def test_the_oldest_segments_go_as_long_as_so_much_is_left(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_bytes=2 * SEGMENT)
        (partition,) = topic.partitions
        await append(partition, days(*[0] * 9))
        await broker.retention.check()
        assert (partition.start_offset, partition.size_bytes) == (4, 2 * SEGMENT + SIZE)
        await configure(broker, topic, retention_bytes=0)
        await broker.retention.check()
        assert (partition.start_offset, partition.size_bytes) == (9, 0)


async def test_a_whole_topic_keeps_its_newest_full_segments(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, 3, retention_topic_bytes=4 * SEGMENT)
        await append(topic.partitions[0], days(9, 9, 3, 3, 1))
        await append(topic.partitions[1], days(8, 8, 7, 7, 6))
        await broker.retention.check()
        assert [each.start_offset for each in topic.partitions] == [2, 0, 0]
        await append(topic.partitions[2], days(2, 2, 2))
        await broker.retention.check()
        assert [each.start_offset for each in topic.partitions] == [2, 4, 0]
        await configure(broker, topic, retention_topic_bytes=1)
        await broker.retention.check()
        # What is written to stays.
        assert [each.start_offset for each in topic.partitions] == [4, 4, 2]


async def test_what_a_subscription_needs_stays_where_the_topic_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS, retention_unacknowledged="keep")
        (partition,) = topic.partitions
        await append(partition, days(9, 9, 8, 8, 7, 7))
        subscription = await subscribed(broker, partition, 3)
        await broker.retention.check()
        assert partition.start_offset == 2
        await subscription.acknowledge_through(5)
        await broker.retention.check()
        assert partition.start_offset == 6


async def test_where_the_topic_does_not_say_so_a_subscription_moves_up(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, days(9, 9, 8, 8, 0))
        subscription = await subscribed(broker, partition, 1)
        await broker.retention.check()
        assert partition.start_offset == subscription.cursor.position == 4


async def test_a_topic_that_is_only_compacted_keeps_what_it_has(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=1, retention_bytes=1, cleanup_policy="compact")
        (partition,) = topic.partitions
        await append(partition, days(9, 9, 9))
        await broker.retention.check()
        assert partition.start_offset == 0
        await configure(
            broker, topic, retention_ms=1, retention_bytes=1, cleanup_policy="compact,delete"
        )
        await broker.retention.check()
        assert partition.start_offset == 3


async def test_each_change_takes_effect_at_once(tmp_path: Path) -> None:
    never = replace(NODE, retention_check_ms=1 << 40)
    async with running(tmp_path, never) as broker:
        topic = await made(broker)
        (partition,) = topic.partitions
        await append(partition, days(9, 9, 5, 5, 0))
        await configure(broker, topic, max_message_bytes=5_000)
        for age, start in ((7, 2), (3, 4)):
            await configure(broker, topic, retention_ms=age * DAY_MS)
            await until(lambda start=start: partition.start_offset == start)


async def test_the_node_says_what_holds_for_topics_that_do_not(tmp_path: Path) -> None:
    async with running(tmp_path, replace(NODE, retention_ms=DAY_MS)) as broker:
        for name, config in (("own", {"retention_ms": "-1"}), ("nodes", {})):
            await broker.topics.create(NAME._replace(topic=name), 1, config=config)
        broker.retention.now_ms = lambda: NOW_MS
        for topic in broker.topics.all():
            await append(topic.partitions[0], days(9))
        await broker.retention.check()
        starts = {each.name.topic: each.partitions[0].start_offset for each in broker.topics.all()}
        assert starts == {"own": 0, "nodes": 1}


async def test_a_closed_log_is_opened_for_what_is_due_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, 60, retention_ms=3 * DAY_MS, retention_unacknowledged="keep")
        for partition in topic.partitions[:-2]:
            await append(partition, days(0))
        await append(topic.partitions[-1], days(9, 9, 0))
        await append(topic.partitions[-2], days(9, 9, 0))
        await subscribed(broker, topic.partitions[-2], 1)
    looks: list[int] = []
    look = Storage.oldest_segments

    async def counted(self: Storage, places: Any) -> Any:
        looks.append(len(places))
        return await look(self, places)

    monkeypatch.setattr(Storage, "oldest_segments", counted)
    async with running(tmp_path, NODE) as broker:
        broker.retention.now_ms = lambda: NOW_MS
        partitions = broker.topics.all()[0].partitions
        for _ in range(3):
            await broker.retention.check()
        assert [each.index for each in partitions if each.is_open] == [59]
        assert partitions[-1].start_offset == 2
        assert looks == [50, 10]
        broker.retention.now_ms = lambda: NOW_MS + 4 * DAY_MS
        await broker.retention.check()
        assert [each.start_offset for each in partitions[:-2]] == [1] * 58
        assert not partitions[-2].is_open


async def test_of_many_segments_only_the_oldest_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Path] = []
    latest_time = Segment.latest_time

    def counted(self: Segment, *args: Any) -> int:
        looked_at.append(self.path)
        return latest_time(self, *args)

    monkeypatch.setattr(Segment, "latest_time", counted)
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, retention_ms=DAY_MS)
        (partition,) = topic.partitions
        await append(partition, days(*[2] * 2, *[0] * 400))
        for _ in range(5):
            await broker.retention.check()
        assert partition.start_offset == 2
        assert log_of(partition).segment_count == 200
        assert len(set(looked_at)) == 2
        assert len(looked_at) <= 4  # On the loop, and then in a thread.
        broker.retention.now_ms = lambda: NOW_MS + 9 * DAY_MS
        await broker.retention.check()
        assert partition.start_offset == 402


async def test_a_log_that_takes_no_writes_keeps_what_it_has_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await made(broker, 2, retention_ms=DAY_MS)
        for partition in topic.partitions:
            await append(partition, days(9, 9, 0))

        async def refuse(offset: int) -> None:
            raise LogFailedError(f"not to {offset}")

        monkeypatch.setattr(log_of(topic.partitions[0]), "trim", refuse)
        await broker.retention.check()
        assert [each.start_offset for each in topic.partitions] == [0, 2]
        assert "t-0 keeps what is due: not to 2" in caplog.messages


async def test_what_is_kept_of_the_disk_is_given_back_to_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = tmp_path / RESERVE_FILE
    async with running(tmp_path, NODE) as broker:
        await broker.retention.check()
        assert not reserve.exists(), "who deletes nothing needs none"
        topic = await made(broker, 2, retention_ms=DAY_MS)
        await broker.retention.check()
        assert reserve.stat().st_size == RESERVE_BYTES
        for partition in topic.partitions:
            await append(partition, days(9, 9, 0))
        trim = log_of(topic.partitions[0]).trim

        async def fail_on_a_full_disk(offset: int) -> None:
            if reserve.exists():
                raise LogWriteError("there is no room")
            await trim(offset)

        monkeypatch.setattr(log_of(topic.partitions[0]), "trim", fail_on_a_full_disk)
        await broker.retention.check()
        assert [each.start_offset for each in topic.partitions] == [2, 2]
        assert reserve.exists()
