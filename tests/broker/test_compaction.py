"""Goal: a compacted topic has the last message of each key, whoever wrote it and whoever reads it,
as its settings say; a topic that is not compacted has everything.

Method: segments of a few batches, and a clock that the test turns.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.compaction import cleaner
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Isolation, Partition
from penstock.broker.topics.topic import Topic
from penstock.log import LogConfig
from penstock.log.header import (
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    build_header,
    read_header,
    walk,
)
from penstock.records import decode
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
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

if TYPE_CHECKING:
    from penstock.records import Encoding

NAME = TopicName("public", "default", "t")
NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)
NOW_MS = TIME // 1000 + 60_000
DAY_MS = 86_400_000


async def made(broker: Broker, **config: object) -> Partition:
    broker.compaction.now_ms = lambda: NOW_MS
    texts = {name: str(value) for name, value in config.items()}
    topic = await broker.topics.create(NAME, 1, config=texts)
    return topic.partitions[0]


async def configure(broker: Broker, **config: object) -> None:
    (topic,) = broker.topics.all()
    texts = topic.config.explicit | {name: str(value) for name, value in config.items()}
    await broker.topics.configure(topic, lambda _: texts)


def of_kafka(record: Record) -> bytes:
    return kafka_batch([record])


def of_pulsar(record: Record) -> bytes:
    said = SingleMessageMetadata(payload_size=0, null_value=record.value is None)
    if record.key is not None:
        said.partition_key = record.key.decode()
    payload = batched([(said, record.value or b"")])
    return pulsar_batch(entry(metadata(num_messages_in_batch=1), payload))


def of_iggy(record: Record) -> bytes:
    return iggy_batch(iggy_body([record]))


def put(partition: Partition, batch: bytes) -> int:
    return partition.append([bytearray(batch)])


async def write(partition: Partition, *values: str, size: int = 0) -> None:
    """Append a batch of one message for each `key=value`, of all protocols in turn."""
    for number, each in enumerate(values):
        key, _, value = each.partition("=")
        content = value.encode().ljust(size, b".") or None
        record = Record(content, key.encode() or None)
        make = (of_kafka, of_pulsar, of_iggy)[number % 3 if content and key else 0]
        put(partition, make(record))
    await partition.flushed()


async def filled(partition: Partition, rounds: int = 10, keys: int = 3) -> None:
    """Write each key so often that most of it is in full segments."""
    for number in range(rounds):
        await write(partition, *(f"k{key}={number}" for key in range(keys)), size=100)


async def stored(partition: Partition) -> list[tuple[int, str, str | None]]:
    """Return offset, key and value of all messages, as they are stored."""
    return await read_as(partition, None)


async def read_as(
    partition: Partition, encoding: Encoding | None
) -> list[tuple[int, str, str | None]]:
    found, offset = [], partition.start_offset
    while offset < partition.readable_end():
        if encoding is None:
            data: list[bytes] = [bytes((await log_of(partition).read(offset, 10_000)).data)]
        else:
            data = [bytes(part) for part in await partition.read(offset, 10_000, encoding)]
        assert data, "there is something up to the end"
        for part in data:
            columns = decode(part)
            for row in range(len(columns)):
                key, value = columns.key(row), columns.value(row)
                name = "" if key is None else key.decode()
                text = None if value is None else value.decode().rstrip(".")
                found.append((int(columns.offsets[row]), name, text))
            offset = [header.next_offset for _, header in walk(part)][-1]
    return found


def last(found: list[tuple[int, str, str | None]]) -> dict[str, str | None]:
    return {key: value for _, key, value in found}


async def test_the_last_message_of_each_key_is_left(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact")
        await filled(partition)
        before = await stored(partition)
        size, end = partition.size_bytes, log_of(partition).full_segment_ends[-1]
        await broker.compaction.check()
        after = await stored(partition)
        assert last(after) == last(before) == {"k0": "9", "k1": "9", "k2": "9"}
        assert set(after) < set(before)
        assert [each for each in after if each[0] >= end] == [e for e in before if e[0] >= end]
        assert len([each for each in after if each[0] < end]) == 3
        assert partition.size_bytes < size // 2
        count = log_of(partition).segment_count
        assert partition.compaction.known.cleaned_to == end
        for encoding in Magic:
            found = await read_as(partition, encoding)
            assert [each[0] for each in found] == [each[0] for each in after]
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        assert partition.compaction.known.cleaned_to == end
        assert await stored(partition) == after
        rewritten = log_of(partition).size_bytes
        await broker.compaction.check()
        assert (log_of(partition).size_bytes, log_of(partition).segment_count) == (rewritten, count)
        # What has become small is joined.
        await filled(partition)
        await broker.compaction.check()
        assert log_of(partition).segment_count < count + 4


async def test_a_topic_that_is_only_cut_keeps_everything(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker)
        await filled(partition)
        before = await stored(partition)
        await broker.compaction.check()
        assert await stored(partition) == before


async def test_tombstones_stay_for_as_long_as_the_topic_says(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(
            broker,
            cleanup_policy="compact",
            delete_retention_ms=5_000,
            min_cleanable_dirty_ratio=0,
        )
        await write(partition, "gone=1", "gone=")
        await filled(partition)
        await broker.compaction.check()
        assert last(await stored(partition))["gone"] is None
        assert (0, "gone", "1") not in await stored(partition)
        await filled(partition)
        broker.compaction.now_ms = lambda: NOW_MS + 4_999
        await broker.compaction.check()
        assert "gone" in last(await stored(partition))
        await filled(partition)
        broker.compaction.now_ms = lambda: NOW_MS + 5_000
        await broker.compaction.check()
        assert "gone" not in last(await stored(partition))


async def test_tombstones_may_stay_for_ever(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact", delete_retention_ms=(1 << 63) - 1)
        await write(partition, "gone=1", "gone=")
        for now_ms in (NOW_MS, NOW_MS + 1_000_000 * DAY_MS):
            broker.compaction.now_ms = lambda now_ms=now_ms: now_ms
            await filled(partition, rounds=30)
            await broker.compaction.check()
            assert (await stored(partition))[0] == (1, "gone", None)
            tombstone = decode((await log_of(partition).read(1, 1)).data)
            assert tombstone.timestamps.tolist() == [TIME]


async def test_it_begins_when_enough_is_dirty(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0.9)
        await write(partition, *(f"kept{number}=1" for number in range(20)), size=100)
        await broker.compaction.check()
        cleaned_to = partition.compaction.known.cleaned_to
        assert cleaned_to > 0
        await filled(partition, rounds=3)
        await broker.compaction.check()
        assert partition.compaction.known.cleaned_to == cleaned_to
        await configure(broker, min_cleanable_dirty_ratio=0.2)
        await broker.compaction.check()
        assert partition.compaction.known.cleaned_to > cleaned_to


async def test_what_is_young_is_left_alone(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        lag_ms = NOW_MS - TIME // 1000
        partition = await made(broker, cleanup_policy="compact", min_compaction_lag_ms=lag_ms + 1)
        await filled(partition)
        before = await stored(partition)
        await broker.compaction.check()
        assert await stored(partition) == before
        broker.compaction.now_ms = lambda: NOW_MS + 1
        await broker.compaction.check()
        assert len(await stored(partition)) < len(before)


async def test_what_is_old_is_compacted_whatever_the_ratio(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        lag_ms = NOW_MS - TIME // 1000
        partition = await made(
            broker,
            cleanup_policy="compact",
            min_cleanable_dirty_ratio=1,
            max_compaction_lag_ms=lag_ms,
        )
        await write(partition, "k=1", "k=2", "k=3")
        await broker.compaction.check()
        assert len(await stored(partition)) == 3
        broker.compaction.now_ms = lambda: NOW_MS + 1
        await broker.compaction.check()
        assert await stored(partition) == [(2, "k", "3")]


async def test_a_message_is_late_whatever_came_behind_it(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(
            broker,
            cleanup_policy="compact",
            min_cleanable_dirty_ratio=1,
            max_compaction_lag_ms=NOW_MS - TIME // 1000 - 1,
        )
        for time_us in (TIME, TIME + 1_000_000):
            put(partition, of_kafka(Record(b"%d" % time_us, b"k", time=time_us)))
        await partition.flushed()
        await broker.compaction.check()
        assert [offset for offset, _, _ in await stored(partition)] == [1]


async def test_what_somebody_asks_for_is_compacted_once(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker)
        await filled(partition)
        await write(partition, "=nameless")
        await configure(broker, compaction_requested_ms=NOW_MS)
        await broker.compaction.check()
        after = await stored(partition)
        assert [each[1] for each in after] == ["k0", "k1", "k2", ""]
        await filled(partition, rounds=5)
        await broker.compaction.check()
        assert len(await stored(partition)) == 4 + 15
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        await broker.compaction.check()
        assert len(await stored(partition)) == 4 + 15


async def test_a_subscription_of_a_topic_that_is_not_compacted_gets_every_message(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker)
        await filled(partition)
        before = await stored(partition)
        request = SubscribeRequest("s", SubscriptionKind.EXCLUSIVE, 12)
        subscription = await broker.subscriptions.create(partition, request)
        await configure(broker, compaction_requested_ms=NOW_MS)
        await broker.compaction.check()
        after = await stored(partition)
        assert after[-18:] == before[-18:]
        assert len(after) < len(before)
        await subscription.acknowledge_through(29)
        await broker.compaction.check()
        assert len(await stored(partition)) == 3


async def test_a_table_of_keys_that_is_too_small_takes_several_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.broker.compaction")
    monkeypatch.setattr(cleaner, "COMPACTION_MAP_BYTES", 0)
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await write(partition, *(f"k{number % 40}={number}" for number in range(120)))
        before = await stored(partition)
        await broker.compaction.check()
        assert last(await stored(partition)) == last(before)
        passes = [message for message in caplog.messages if "compacted up to" in message]
        assert len(passes) > 2
        assert partition.compaction.known.cleaned_to == log_of(partition).full_segment_ends[-1]


def in_transaction(batch: bytes, producer_id: int, sequence: int = 0) -> bytes:
    header, body = read_header(batch), batch[HEADER_SIZE:]
    made = build_header(
        header.magic,
        body,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=ATTRIBUTE_TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    return bytes(made) + body


async def test_transactions(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        partition._verification.verify = lambda *_: None  # type: ignore[method-assign]
        await write(partition, "a=1", "b=1")
        put(partition, in_transaction(of_kafka(Record(b"2", b"a")), 7))
        partition.end_transaction(7, 0, committed=False, coordinator_epoch=0)
        put(partition, in_transaction(of_kafka(Record(b"2", b"b")), 8))
        partition.end_transaction(8, 0, committed=True, coordinator_epoch=0)
        await filled(partition, rounds=4)
        put(partition, in_transaction(of_kafka(Record(b"open", b"k0")), 9))
        stable = partition.readable_end()
        await filled(partition, rounds=6)
        assert partition.readable_end() == stable
        await broker.compaction.check()
        # Nothing above the last stable offset is looked at.
        assert partition.compaction.known.cleaned_to <= stable
        end = partition.readable_end(Isolation.READ_UNCOMMITTED)
        found = decode((await log_of(partition).read(0, 1_000_000, end)).data)
        values = [(found.key(row), found.value(row)) for row in range(len(found))]
        assert (b"a", b"1") in values
        assert (b"a", b"2") not in values
        assert (b"b", b"2") in values
        assert (b"b", b"1") not in values


async def test_sequences_of_producers_outlast_compaction_and_checkpoint(tmp_path: Path) -> None:
    def numbered(sequence: int) -> bytes:
        batch = in_transaction(of_kafka(Record(b"%d" % sequence, b"k0")), 7, sequence)
        header, body = bytearray(batch[:HEADER_SIZE]), batch[HEADER_SIZE:]
        plain = build_header(
            Magic.KAFKA,
            body,
            record_count=1,
            base_timestamp=TIME // 1000,
            max_timestamp=TIME // 1000,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        assert len(header) == len(plain)
        return bytes(plain) + body

    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact")
        put(partition, numbered(0))
        first = put(partition, numbered(1))
        await filled(partition)
        await broker.compaction.check()
        assert (first, "k0", "1") not in await stored(partition)
        folder = log_of(partition).files[0].parent
    (folder / "checkpoint").unlink()
    async with running(tmp_path, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        assert put(partition, numbered(1)) == first
        assert put(partition, numbered(2)) == partition.end_offset - 1


async def test_a_damaged_batch_leaves_the_log_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact")
        await filled(partition)
        first = log_of(partition).files[0]
        size = partition.size_bytes
        with first.open("r+b") as file:
            file.seek(100)
            file.write(b"!")
        await broker.compaction.check()
        assert partition.size_bytes == size
        assert [path for path in first.parent.iterdir() if "-" in path.name] == []
        assert any("is not compacted for now" in message for message in caplog.messages)
        caplog.clear()
        await broker.compaction.check()
        assert caplog.messages == []


async def test_a_log_that_nobody_can_compact_does_not_keep_the_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprised(_self: object) -> None:
        raise RuntimeError("nobody thought of this")

    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact")
        await filled(partition)
        size = partition.size_bytes
        with monkeypatch.context() as broken:
            broken.setattr(cleaner.Cleaner, "map_keys", surprised)
            await broker.compaction.check()
        assert partition.size_bytes == size
        assert "nobody thought of this" in caplog.text
        await configure(broker, min_cleanable_dirty_ratio=0)
        await broker.compaction.check()
        assert partition.size_bytes < size


async def test_readers_go_on_meanwhile(tmp_path: Path) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
        await filled(partition, rounds=30)
        expected = last(await stored(partition))
        compacting = asyncio.ensure_future(broker.compaction.check())
        rounds = 0
        while not compacting.done():
            for encoding in Magic:
                assert last(await read_as(partition, encoding)) == expected
                await asyncio.sleep(0)
            rounds += 1
        await compacting
        assert rounds > 0
        assert last(await stored(partition)) == expected


async def test_a_topic_that_is_deleted_meanwhile_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, NODE) as broker:
        partition = await made(broker, cleanup_policy="compact")
        await filled(partition, rounds=30)
        compacting = asyncio.ensure_future(broker.compaction.check())
        await asyncio.sleep(0)
        topic: Topic = broker.topics.all()[0]
        await broker.topics.delete(topic)
        await compacting
        assert not any(record.levelno >= logging.ERROR for record in caplog.records)
        async with asyncio.timeout(60):
            while any((tmp_path / "topics").iterdir()):
                await asyncio.sleep(0.01)


async def test_it_runs_by_itself_and_stops_with_the_broker(tmp_path: Path) -> None:
    async with running(tmp_path, replace(NODE, compaction_check_ms=50)) as broker:
        partition = await made(broker, cleanup_policy="compact")
        await filled(partition)
        async with asyncio.timeout(60):
            while len(await stored(partition)) > 10:
                await asyncio.sleep(0.05)
