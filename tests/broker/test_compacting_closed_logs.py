"""Goal: a log that nobody uses is compacted too, and none with nothing to do is opened for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.identity import PartitionIdentity
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.storage import Storage
from penstock.log import Log, LogConfig, LogMissingError
from running import running
from stored_batches import TIME, Record, kafka_batch

NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)
NOW_MS = TIME // 1000 + 60_000
SEGMENT = 8
"""About so many messages fill one."""


async def made(broker: Broker, messages: int, **config: object) -> Partition:
    """Create a topic of so many messages of one key."""
    name = TopicName("public", "default", f"t{len(broker.topics.all())}")
    texts = {name: str(value) for name, value in config.items()}
    topic = await broker.topics.create(name, 1, config=texts)
    await write(topic.partitions[0], messages)
    return topic.partitions[0]


async def write(partition: Partition, messages: int) -> None:
    for number in range(messages):
        partition.append([bytearray(kafka_batch([Record(b"%050d" % number, b"key")]))])
    if messages:
        await partition.flushed()


async def checked(broker: Broker, now_ms: int = NOW_MS) -> list[int]:
    """Have the broker look at its logs; return which topics' are open then."""
    broker.compaction.now_ms = lambda: now_ms
    await broker.compaction.check()
    partitions = [topic.partitions[0] for topic in broker.topics.all()]
    return [number for number, each in enumerate(partitions) if each.is_open]


async def test_a_closed_log_is_opened_where_there_is_something_to_do(tmp_path: Path) -> None:
    compacted = {"cleanup_policy": "compact"}
    async with running(tmp_path, NODE) as broker:
        await made(broker, 5 * SEGMENT)
        due = await made(broker, 5 * SEGMENT, **compacted)
        await made(broker, 5 * SEGMENT, **compacted, min_cleanable_dirty_ratio=1)
        await made(broker, SEGMENT // 2, **compacted)
        await made(broker, SEGMENT // 2, **compacted, max_compaction_lag_ms=1_000)
        await made(broker, 0, **compacted, max_compaction_lag_ms=1_000)
        await made(broker, 5 * SEGMENT, compaction_requested_ms=NOW_MS)
        before = due.size_bytes
    async with running(tmp_path, NODE) as broker:
        assert await checked(broker) == [1, 4, 6]
        assert broker.topics.all()[1].partitions[0].size_bytes < before // 2
    # What was done is in their checkpoints.
    async with running(tmp_path, NODE) as broker:
        assert await checked(broker) == []


async def test_what_was_written_since_counts_against_what_was_compacted(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        await made(broker, 5 * SEGMENT, cleanup_policy="compact", min_cleanable_dirty_ratio=0.9)
        assert await checked(broker) == [0]
        assert broker.topics.all()[0].partitions[0].compaction.known.cleaned_to
    async with running(tmp_path, NODE) as broker:
        assert await checked(broker) == []
        partition = broker.topics.all()[0].partitions[0]
        await partition.opened()
        await write(partition, 20 * SEGMENT)
        size = partition.size_bytes
    async with running(tmp_path, NODE) as broker:
        assert await checked(broker) == [0]
        assert broker.topics.all()[0].partitions[0].size_bytes < size // 4


async def test_each_folder_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, NODE) as broker:
        name = TopicName("public", "default", "t")
        await broker.topics.create(name, 60, config={"cleanup_policy": "compact"})
    looks: list[int] = []
    look = Storage.closed_logs

    async def counted(self: Storage, places: Sequence[Any]) -> Any:
        looks.append(len(places))
        return await look(self, places)

    monkeypatch.setattr(Storage, "closed_logs", counted)
    async with running(tmp_path, NODE) as broker:
        for _ in range(3):
            assert await checked(broker) == []
        assert looks == [50, 10]
        (topic,) = broker.topics.all()
        asked = {"compaction_requested_ms": str(NOW_MS)}
        await broker.topics.configure(topic, lambda _: topic.config.explicit | asked)
        await broker.compaction.check()
        assert all(partition.is_open for partition in topic.partitions)
        assert looks == [50, 10]


async def test_a_log_that_can_not_be_opened_waits_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, NODE) as broker:
        await made(broker, 5 * SEGMENT, cleanup_policy="compact")
        await made(broker, 5 * SEGMENT, cleanup_policy="compact")
        missing = broker.topics.all()[0].id
    open_log = Storage.open_log

    async def failing(self: Storage, identity: PartitionIdentity, *how: Any) -> Log:
        if UUID(identity.topic_id) == missing:
            raise LogMissingError("it is not there")
        return await open_log(self, identity, *how)

    monkeypatch.setattr(Storage, "open_log", failing)
    async with running(tmp_path, NODE) as broker:
        for _ in range(3):
            assert await checked(broker) == [1]
    assert caplog.text.count("is not compacted for now: its log can't be opened") == 1
