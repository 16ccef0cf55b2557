"""Goal: what is given up while a log is compacted, or is to stay after all, harms nothing of it.

Method: the thread that writes segments anew has something else happen first, or right after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.compaction.cleaner import Cleaner
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log import LogConfig
from penstock.records import decode
from running import running
from stored_batches import TIME, Record, kafka_batch

if TYPE_CHECKING:
    from penstock.log.interface import Rewriting

NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)
KEYS = [b"a", b"b", b"c"]


def batch(number: int) -> bytearray:
    return bytearray(kafka_batch([Record(b"%050d" % number, KEYS[number % len(KEYS)])]))


async def filled(broker: Broker) -> Partition:
    """Return a partition of many segments, all of which become one when they are compacted."""
    broker.compaction.now_ms = lambda: TIME // 1000 + 60_000
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    (partition,) = topic.partitions
    for number in range(90):
        partition.append([batch(number)])
    await partition.flushed()
    await configure(broker, segment_bytes="1048576")
    return partition


async def configure(broker: Broker, **texts: str) -> None:
    (topic,) = broker.topics.all()
    await broker.topics.configure(topic, lambda _: topic.config.explicit | texts)


async def keys_below(partition: Partition, end: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    offset, log = partition.start_offset, log_of(partition)
    while offset < end:
        batches = await log.read(offset, 100_000, end)
        columns = decode(batches.data)
        found += [columns.key(row) for row in range(len(columns))]
        offset = batches.next_offset
    return found


def meanwhile(
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    happens: Callable[[], Awaitable[Any]],
    times: int = 1,
) -> list[Rewriting]:
    """Have something happen before or after each of the next segments is written anew; return what
    is written so.
    """
    clean, written = Cleaner.clean, []
    loop = asyncio.get_running_loop()

    async def go_on() -> None:
        await happens()

    def at(moment: str) -> None:
        if moment == when and len(written) <= times:
            asyncio.run_coroutine_threadsafe(go_on(), loop).result()

    def interrupted(self: Cleaner, rewriting: Rewriting) -> bool:
        written.append(rewriting)
        at("before")
        is_needed = clean(self, rewriting)
        at("after")
        return is_needed

    monkeypatch.setattr(Cleaner, "clean", interrupted)
    return written


@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_a_trim_leaves_of_a_log_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await filled(broker)
        log = log_of(partition)
        meanwhile(monkeypatch, when, lambda: partition.trim(log.full_segment_ends[0]))
        await configure(broker, cleanup_policy="compact")
        await broker.compaction.check()
        cleaned_to = partition.compaction.known.cleaned_to
        assert cleaned_to == log.full_segment_ends[-1]
        assert sorted(await keys_below(partition, cleaned_to)) == KEYS


async def test_a_topic_that_is_to_keep_everything_does_so_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await filled(broker)
        meanwhile(monkeypatch, "after", lambda: configure(broker, cleanup_policy="delete"))
        await configure(broker, cleanup_policy="compact")
        await broker.compaction.check()
        assert len(await keys_below(partition, partition.end_offset)) == 90


async def test_what_comes_meanwhile_waits_for_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def come() -> None:
        partition.append([batch(0)])
        await partition.flushed()

    async with running(tmp_path, NODE) as broker:
        partition = await filled(broker)
        written = meanwhile(monkeypatch, "after", come, times=5)
        await configure(broker, cleanup_policy="compact", max_compaction_lag_ms="1")
        await broker.compaction.check()
        assert len(written) == 1
