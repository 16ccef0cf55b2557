"""Partitions that were deleted leave nothing behind, also not to later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.broker.errors import (
    InvalidPartitionCountError,
    UnknownPartitionError,
    UnknownTopicError,
)
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.storage import Storage
from penstock.broker.topics.topic import Topic
from penstock.log.header import Magic, build_header
from penstock.log.layout import topic_directory
from penstock.metadata.errors import MetadataError
from penstock.metadata.topics import DeletedPartition, TopicRepository
from running import running

ORDERS = TopicName("public", "default", "orders")
READER = OffsetOwner("kafka", "readers")


async def topic_of(broker: Broker, partitions: int = 3) -> Topic:
    """The topic, made with a message in each partition, and with a committed offset for it."""
    topic = broker.topics.get(ORDERS)
    if topic is None:
        topic = await broker.topics.create(ORDERS, partitions)
        for partition in topic.partitions:
            await append(partition, b"old")
            await broker.offsets.commit(READER, {partition.id: CommittedOffset(1)})
    for partition in topic.partitions:
        await partition.opened()
    return topic


async def append(partition: Partition, body: bytes) -> None:
    header = build_header(Magic.KAFKA, body, record_count=1, base_timestamp=1, max_timestamp=1)
    await partition.durable(partition.append([header + body]))


async def bodies(partition: Partition) -> bytes:
    return b"".join(bytes(part)[-3:] for part in await partition.read(0, 1 << 20, Magic.KAFKA))


def folders(data_folder: Path, topic: Topic) -> set[str]:
    """The folders in that of the topic."""
    inside = topic_directory(data_folder, topic.id).iterdir()
    return {each.name for each in inside if each.is_dir()}


async def until_only(data_folder: Path, topic: Topic, *names: str) -> None:
    """Return when the topic's folder has only these: what is deleted takes a moment."""
    async with asyncio.timeout(30):
        while folders(data_folder, topic) != set(names):
            await asyncio.sleep(0.01)


async def test_all_of_them_goes_and_new_ones_begin_anew(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        kept, *doomed = topic.partitions
        ids = {each.id for each in topic.partitions}
        woken: list[int] = []
        doomed[1].add_listener(lambda: woken.append(1))
        await broker.topics.remove_partitions(topic, 2)
        assert topic.partitions == [kept]
        assert woken
        assert set(broker.offsets.of_owner(READER)) == {kept.id}
        assert not any(map(broker.topics.has_partition, (each.id for each in doomed)))
        for use in (lambda: append(doomed[0], b"new"), lambda: bodies(doomed[1])):
            with pytest.raises(UnknownTopicError):
                await use()
        with pytest.raises(UnknownPartitionError):
            topic.partition(1)
        await broker.topics.add_partitions(topic, 3)
        assert not ids & {each.id for each in topic.partitions[1:]}
        assert [each.end_offset for each in topic.partitions] == [1, 0, 0]
        await append(topic.partitions[2], b"new")
        await until_only(tmp_path, topic, "0", "1", "2")
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        assert [await bodies(each) for each in topic.partitions] == [b"old", b"", b"new"]
        assert set(broker.offsets.of_owner(READER)) == {kept.id}


@pytest.mark.parametrize("count", [-1, 0, 4])
async def test_counts_that_a_topic_can_not_lose(tmp_path: Path, count: int) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        with pytest.raises(InvalidPartitionCountError):
            await broker.topics.remove_partitions(topic, count)
        assert len(topic.partitions) == 3


async def test_all_can_be_deleted_and_the_topic_stays(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        await broker.topics.remove_partitions(topic, 3)
        await until_only(tmp_path, topic)
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        assert topic.partitions == []
        await broker.topics.delete(topic)
        with pytest.raises(UnknownTopicError):
            await broker.topics.remove_partitions(topic, 1)


async def test_what_the_database_does_not_take_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise MetadataError("no room")

    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        monkeypatch.setattr(TopicRepository, "delete_partitions", refuse)
        with pytest.raises(MetadataError):
            await broker.topics.remove_partitions(topic, 1)
        await append(topic.partitions[2], b"new")
        assert [each.end_offset for each in topic.partitions] == [1, 1, 2]


@pytest.fixture
def unmoved(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Has the folders of deleted partitions left where they are, as by a crash."""

    async def leave(_: Storage, _partitions: Sequence[DeletedPartition]) -> None:
        return None

    async def fail(_: Storage, partitions: Sequence[DeletedPartition]) -> list[Exception | None]:
        return [OSError("the disk is gone") for _ in partitions]

    monkeypatch.setattr(Storage, "doom", leave)
    monkeypatch.setattr(Storage, "remove_partitions", fail)
    return monkeypatch


async def test_a_deletion_that_was_cut_short_is_finished(
    tmp_path: Path, unmoved: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        await broker.topics.remove_partitions(topic, 1)
    assert folders(tmp_path, topic) == {"0", "1", "2"}
    unmoved.undo()
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        assert len(topic.partitions) == 2
        await broker.topics.add_partitions(topic, 3)
        assert await bodies(topic.partitions[2]) == b""
        await append(topic.partitions[2], b"new")
        await until_only(tmp_path, topic, "0", "1", "2")
    async with running(tmp_path) as broker:
        assert await bodies((await topic_of(broker)).partitions[2]) == b"new"


async def test_a_folder_that_could_not_be_moved_is_in_no_new_partition_s_way(
    tmp_path: Path, unmoved: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        await broker.topics.remove_partitions(topic, 1)
        await broker.topics.add_partitions(topic, 3)
        assert await bodies(topic.partitions[2]) == b""
        await append(topic.partitions[2], b"new")
    unmoved.undo()
    async with running(tmp_path) as broker:
        assert await bodies((await topic_of(broker)).partitions[2]) == b"new"


async def test_the_rows_of_a_deleted_topic_s_partitions_go_with_it(
    tmp_path: Path, unmoved: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        topic = await topic_of(broker)
        await broker.topics.remove_partitions(topic, 1)
        await broker.topics.delete(topic)
    unmoved.undo()
    async with running(tmp_path) as broker:
        assert broker.topics.all() == []
        async with asyncio.timeout(30):
            while any((tmp_path / "topics").iterdir()):
                await asyncio.sleep(0.01)
