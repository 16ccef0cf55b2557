"""What can't be made leaves nothing behind, and what is deleted goes without holding anybody up."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY
from uuid import UUID, uuid4

import pytest

from kafka_dialog import Dialog
from partition_logs import log_of
from patience import PATIENCE_SECONDS, until
from penstock.broker.errors import (
    StorageError,
    TopicExistsError,
    UnknownPartitionError,
    UnknownTopicError,
)
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics import storage
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.numbers import LowestFree
from penstock.iggy.offsets import store_offset
from penstock.kafka.wire import ErrorCode, api
from penstock.log.files import RealFile, RealFileSystem
from penstock.log.header import Magic, build_header
from penstock.log.layout import IDENTITY_FILE, topic_directory
from penstock.metadata.errors import MetadataError
from penstock.metadata.topics import TopicRepository
from running import running

ORDERS = TopicName("public", "default", "orders")
SUBSCRIBE = SubscribeRequest("s", SubscriptionKind.EXCLUSIVE, position=0)


def batch(body: bytes = b"hello") -> list[bytearray]:
    header = build_header(Magic.KAFKA, body, record_count=1, base_timestamp=1, max_timestamp=1)
    return [header + body]


def folders(data_folder: Path) -> list[str]:
    return [each.name for each in (data_folder / "topics").iterdir()]


async def until_soon(is_so: Callable[[], bool]) -> None:
    """Return in the very turn of the loop in which it is so."""
    for _ in range(10):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("not soon")


def full_disk(_files: RealFileSystem, directory: Path) -> None:
    if directory.name == "1":
        raise OSError(errno.ENOSPC, "No space left on device", str(directory))
    directory.mkdir(parents=True, exist_ok=True)


async def test_a_topic_whose_folder_can_not_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        with monkeypatch.context() as patched:
            patched.setattr(RealFileSystem, "make_directory", full_disk)
            with pytest.raises(StorageError):
                await broker.topics.create(ORDERS, 2)
        assert broker.topics.all() == []
        assert folders(tmp_path) == []
        other = await broker.topics.create(ORDERS._replace(topic="other"), 1)
        assert other.iggy_topic_id == 0
        await broker.topics.create(ORDERS, 2)
    async with running(tmp_path) as broker:
        assert len(broker.topics.all()) == 2


async def test_partitions_whose_folders_can_not_be_made_leave_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        topic.partitions[0].append(batch())
        with monkeypatch.context() as patched:
            patched.setattr(RealFileSystem, "make_directory", full_disk)
            with pytest.raises(StorageError):
                await broker.topics.add_partitions(topic, 3)
        assert len(topic.partitions) == 1
        await broker.topics.add_partitions(topic, 3)
        assert topic.partitions[0].end_offset == 1


async def refuse(*_: object) -> None:
    raise MetadataError("topics were not written")


async def test_first_partitions_that_can_not_be_made_leave_their_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 0)
        for place, name, failing, error in (
            (RealFileSystem, "make_directory", full_disk, StorageError),
            (broker.topics._repository, "insert_partitions", refuse, MetadataError),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(place, name, failing)
                with pytest.raises(error):
                    await broker.topics.add_partitions(topic, 3)
            assert folders(tmp_path) == [topic.id.hex]
    async with running(tmp_path) as broker:
        found = broker.topics.get(ORDERS)
        assert found is not None
        assert found.partitions == []
        await broker.topics.add_partitions(found, 2)
        found.partitions[0].append(batch())


async def test_a_topic_without_partitions_goes_as_others_do(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 0)
        group = await broker.topic_groups.create(topic, "readers")
        assert group.members == {}
        await broker.topics.delete(topic)
        with pytest.raises(UnknownTopicError):
            await broker.topic_groups.create(topic, "too late")
        await until(lambda: folders(tmp_path) == [])


async def test_a_row_that_can_not_be_written_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker:
        with monkeypatch.context() as patched:
            patched.setattr(broker.topics._repository, "insert", refuse)
            with pytest.raises(MetadataError):
                await broker.topics.create(ORDERS, 2)
        assert folders(tmp_path) == []
        assert (await broker.topics.create(ORDERS, 2)).iggy_topic_id == 0


async def test_a_creation_whose_client_goes_is_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        for number in range(20):
            name = ORDERS._replace(topic=str(number))
            creating = asyncio.ensure_future(broker.topics.create(name, 1))
            await asyncio.sleep(number / 5000)
            creating.cancel()
            await asyncio.wait([creating])
            if broker.topics.get(name) is None:
                await broker.topics.get_or_create(name)
            with pytest.raises(TopicExistsError):
                await broker.topics.create(name, 1)
    async with running(tmp_path) as broker:
        assert len(broker.topics.all()) == 20


async def test_a_deletion_does_not_wait_for_a_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    began = threading.Event()

    def slow(_file: RealFile) -> None:
        began.set()
        go_on.wait(PATIENCE_SECONDS)

    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        monkeypatch.setattr(RealFile, "fdatasync", slow)
        partition = topic.partitions[0]
        durable = partition.durable(partition.append(batch()))
        await asyncio.to_thread(began.wait)
        await broker.topics.delete(topic)
        again = await broker.topics.create(ORDERS, 1)
        assert again.partitions[0].end_offset == 0
        assert again.partitions[0].id != partition.id
        # Its folder is there as long as the flush uses it.
        assert topic_directory(tmp_path, topic.id).exists()
        go_on.set()
        with pytest.raises(Exception, match="closed"):
            await durable
        await until(lambda: folders(tmp_path) == [again.id.hex])


async def test_a_deletion_goes_on_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def fail(_self: storage.Storage, topic_id: object) -> None:
        tried.append(topic_id)
        raise OSError(errno.EIO, "Input/output error")

    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        with monkeypatch.context() as patched:
            patched.setattr(storage.Storage, "_remove_topic", fail)
            await broker.topics.delete(topic)
            await until(lambda: tried)
    assert folders(tmp_path) == [topic.id.hex]
    async with running(tmp_path) as broker:
        assert broker.topics.all() == []
        await until(lambda: folders(tmp_path) == [])


async def test_a_log_that_can_not_be_opened_is_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1)).partitions[0]
        partition.append(batch())
    tries = 0

    def no_files(_files: RealFileSystem, _directory: Path) -> dict[str, int]:
        nonlocal tries
        tries += 1
        raise OSError(errno.EMFILE, "Too many open files")

    async with running(tmp_path) as broker:
        topic = broker.topics.get(ORDERS)
        assert topic is not None
        partition = topic.partitions[0]
        with monkeypatch.context() as patched:
            patched.setattr(RealFileSystem, "entries", no_files)
            outcomes = await asyncio.gather(
                *(partition.opened() for _ in range(50)), return_exceptions=True
            )
            assert {type(each).__name__ for each in outcomes} == {"LogNotOpenError"}
            assert tries == 1
        assert "orders-0 can't be opened" in caplog.text
        partition._opening.again()
        await partition.opened()
        assert partition.end_offset == 1


async def test_a_log_is_opened_when_it_is_used_and_not_before(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        for number in range(3):
            topic = await broker.topics.create(ORDERS._replace(topic=str(number)), 2)
            topic.partitions[1].append(batch())
    async with running(tmp_path) as broker:
        partitions = [each for topic in broker.topics.all() for each in topic.partitions]
        assert not any(partition.is_open for partition in partitions)
        await asyncio.gather(*(partitions[1].opened() for _ in range(10)))
        assert [each.is_open for each in partitions] == [False, True] + [False] * 4
        assert log_of(partitions[1]).end_offset == 1


def test_the_lowest_free_number_is_given() -> None:
    numbers = LowestFree([5, 0, 2])
    assert [numbers.take() for _ in range(4)] == [1, 3, 4, 6]
    for number in (4, 0):
        numbers.give_back(number)
    assert [numbers.take() for _ in range(3)] == [0, 4, 7]


async def test_what_a_topic_that_is_being_deleted_is_to_keep_is_refused_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its rows go just before the others would come, of which each refers to one of them."""
    owner = OffsetOwner("kafka", "group")
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        doomed = topic.partitions[0]
        other = (await broker.topics.create(ORDERS._replace(topic="other"), 1)).partitions[0]
        dialog = Dialog(broker)
        names = {"orders": doomed, "other": other}
        deleting = asyncio.ensure_future(broker.topics.delete(topic))
        await until_soon(lambda: doomed.deleted)
        assert broker.topics.get(ORDERS) is not None, "its rows are on their way"
        request = api("OffsetCommit").request
        answer = await dialog.ask(
            "OffsetCommit",
            9,
            group_id="group",
            topics=[
                request.OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        request.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
                    ],
                )
                for name in names
            ],
        )
        codes = [topic.partitions[0].error_code for topic in answer.topics]
        assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
        with pytest.raises(UnknownTopicError):
            await broker.topic_groups.create(topic, "group")
        with pytest.raises(UnknownTopicError):
            await broker.subscriptions.create(doomed, SUBSCRIBE)
        await deleting
        assert broker.offsets.get(owner, doomed.id) is None
        assert broker.offsets.get(owner, other.id) == CommittedOffset(7, committed_at_ms=ANY)
        with pytest.raises(UnknownPartitionError):
            await store_offset(broker, owner, doomed, 7)
    assert "were not written" not in caplog.text


async def test_a_deletion_that_the_database_refuses_leaves_the_topic_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_repository: TopicRepository, _topic_id: UUID) -> None:
        raise MetadataError("topics were not written")

    owner = OffsetOwner("kafka", "group")
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        with monkeypatch.context() as patched:
            patched.setattr(TopicRepository, "delete", refuse)
            with pytest.raises(MetadataError):
                await broker.topics.delete(topic)
        partition = topic.partitions[0]
        partition.append(batch())
        await partition.flushed()
        assert not await broker.offsets.commit(owner, {partition.id: CommittedOffset(1)})
        await broker.topics.delete(topic)


async def test_a_new_topic_costs_one_flush_for_each_file_and_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files that say what the folders are, the folders, and the one that the topic is in."""
    flushed: list[int] = []
    flush = os.fsync

    def counted(descriptor: int) -> None:
        flushed.append(descriptor)
        flush(descriptor)

    async with running(tmp_path) as broker:
        monkeypatch.setattr(os, "fsync", counted)
        await broker.topics.create(ORDERS, 1)
        assert len(flushed) == 5


async def test_what_a_crash_leaves_of_a_new_topic_is_nobodys(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    begun = topic_directory(tmp_path, uuid4())
    (begun / "0").mkdir(parents=True)
    (begun / "0" / IDENTITY_FILE).write_text('{"format": 1, "clus')
    async with running(tmp_path) as broker:
        assert broker.topics.all() == []
        await until(lambda: not begun.exists())
