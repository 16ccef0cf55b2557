"""Goal: who changes the settings of one topic has that one looked at, and keeps no other waiting.

Method: two topics, and what is asked of the logs of each while settings of one change.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from patience import until
from penstock.broker.broker import Broker
from penstock.broker.compaction.on_partition import PartitionCompaction
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.topic import Topic
from penstock.log import LogConfig
from running import running
from stored_batches import Record, kafka_batch

NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)


async def dirty(broker: Broker, name: str) -> Topic:
    """Return a compacted topic of which something is due."""
    config = {"cleanup_policy": "compact"}
    topic = await broker.topics.create(TopicName("public", "default", name), 1, config=config)
    (partition,) = topic.partitions
    for _ in range(10):
        partition.append([bytearray(kafka_batch([Record(bytes(300), b"key")]))])
    await partition.flushed()
    return topic


def cleaned_to(topic: Topic) -> int:
    return topic.partitions[0].compaction.known.cleaned_to


async def change(broker: Broker, topic: Topic, number: int) -> None:
    anew = topic.config.explicit | {"delete_retention_ms": str(number)}
    await broker.topics.configure(topic, lambda _: anew)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[PartitionCompaction]:
    """Those whose segments are asked for from now on."""
    found: list[PartitionCompaction] = []
    segments = PartitionCompaction.segments

    async def noted(self: PartitionCompaction) -> object:
        found.append(self)
        return await segments(self)

    monkeypatch.setattr(PartitionCompaction, "segments", noted)
    return found


async def test_a_change_costs_a_look_at_its_topic(
    tmp_path: Path, looked_at: list[PartitionCompaction]
) -> None:
    async with running(tmp_path, NODE) as broker:
        changed, other = [await dirty(broker, name) for name in ("changed", "other")]
        await change(broker, changed, 1)
        await until(lambda: cleaned_to(changed) > 0)
        assert set(looked_at) == {changed.partitions[0].compaction}
        assert cleaned_to(other) == 0


async def test_what_is_compacted_is_not_read_to_see_that(
    tmp_path: Path, looked_at: list[PartitionCompaction]
) -> None:
    async with running(tmp_path, NODE) as broker:
        topic = await dirty(broker, "done")
        await broker.compaction.check()
        done = cleaned_to(topic)
        assert done > 0
        looked_at.clear()
        await broker.compaction.check()
        assert not looked_at
        topic.partitions[0].append([bytearray(kafka_batch([Record(bytes(900), b"key")]))])
        topic.partitions[0].append([bytearray(kafka_batch([Record(bytes(900), b"key")]))])
        await topic.partitions[0].flushed()
        await change(broker, topic, 1)
        await broker.compaction.check()
        assert cleaned_to(topic) > done


async def test_changes_without_end_do_not_put_off_the_look_at_all(tmp_path: Path) -> None:
    async with running(tmp_path, replace(NODE, compaction_check_ms=300)) as broker:
        changing = await dirty(broker, "changing")

        async def change_on() -> None:
            for number in itertools.count(1):
                await change(broker, changing, number)

        changes = asyncio.create_task(change_on())
        await until(lambda: cleaned_to(changing) > 0)
        other = await dirty(broker, "other")
        await until(lambda: cleaned_to(other) > 0)
        changes.cancel()
