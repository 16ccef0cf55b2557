"""Goal: topics that are created or deleted at the same time share what each of them waits for.

Method: flushes and transactions are counted, not timed.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_dialog import Dialog
from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.broker.errors import StorageError, TopicExistsError, UnknownTopicError
from penstock.broker.topics.joined import Joined
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.new_topic import NewTopic
from penstock.broker.topics.topic import Topic
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import TOPICS_CHANGED_TOGETHER
from penstock.log.files import RealFileSystem
from penstock.metadata.sqlite import SqliteDatabase
from running import running

COUNT = 50
NAMES = [TopicName("public", "default", f"t{number}") for number in range(COUNT)]


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each one that is begun."""
    begun: list[None] = []
    begin = SqliteDatabase.transaction

    def counted(database: SqliteDatabase) -> object:
        begun.append(None)
        return begin(database)

    monkeypatch.setattr(SqliteDatabase, "transaction", counted)
    return begun


async def made(broker: Broker, names: Sequence[TopicName] = NAMES) -> list[Topic]:
    created = await broker.topics.create_all([NewTopic(name, 1) for name in names])
    topics = [each for each in created if isinstance(each, Topic)]
    assert len(topics) == len(names)
    return topics


async def test_topics_that_are_asked_for_at_once_share_transactions_and_flushes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transactions: list[None]
) -> None:
    flushed: list[int] = []
    flush = os.fsync

    def counted(descriptor: int) -> None:
        flushed.append(descriptor)
        flush(descriptor)

    async with running(tmp_path) as broker:
        monkeypatch.setattr(os, "fsync", counted)
        await made(broker)
        assert len(flushed) == 4 * COUNT + 1, "the folder that all are in is flushed once"
        del flushed[:], transactions[:]
        await broker.topics.create_all([NewTopic(name, 1) for name in NAMES])
        assert (flushed, transactions) == ([], []), "what is refused costs nothing"
        others = [name._replace(topic=f"other-{name.topic}") for name in NAMES]
        await asyncio.gather(*(broker.topics.create(name, 1) for name in others))
        assert len(transactions) == 1
    async with running(tmp_path) as broker:
        assert {topic.name for topic in broker.topics.all()} == {*NAMES, *others}
        assert sorted(topic.iggy_topic_id for topic in broker.topics.all()) == [*range(2 * COUNT)]
        ids = [topic.partitions[0].id for topic in broker.topics.all()]
        assert len(set(ids)) == 2 * COUNT


async def test_what_can_not_be_made_costs_its_neighbours_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = RealFileSystem.make_directory

    def full_disk(files: RealFileSystem, directory: Path) -> None:
        if directory.name == "1":
            raise OSError(errno.ENOSPC, "No space left on device", str(directory))
        make(files, directory)

    async with running(tmp_path) as broker:
        await made(broker, NAMES[:1])
        asked = [NewTopic(NAMES[0], 1), NewTopic(NAMES[1], 2), NewTopic(NAMES[2], 1)]
        with monkeypatch.context() as patched:
            patched.setattr(RealFileSystem, "make_directory", full_disk)
            outcomes = await broker.topics.create_all(asked)
        assert [type(each) for each in outcomes] == [TopicExistsError, StorageError, Topic]
        assert [topic.name for topic in broker.topics.all()] == [NAMES[0], NAMES[2]]
        assert len([*(tmp_path / "topics").iterdir()]) == 2
        assert (await broker.topics.create(NAMES[1], 2)).iggy_topic_id == 1
    async with running(tmp_path) as broker:
        assert len(broker.topics.all()) == 3


async def test_a_row_that_is_refused_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        # A name that memory does not have and the database does.
        (first,) = await made(broker, NAMES[:1])
        broker.topics._index.remove(first)
        outcomes = await broker.topics.create_all([NewTopic(name, 1) for name in NAMES[:3]])
        assert [isinstance(each, Topic) for each in outcomes] == [False, True, True]
        broker.topics._index.add(first)
        assert len([*(tmp_path / "topics").iterdir()]) == 3
    async with running(tmp_path) as broker:
        assert len(broker.topics.all()) == 3


async def test_of_those_that_ask_for_one_name_the_first_gets_it(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        asked = [NewTopic(NAMES[0], 1), NewTopic(NAMES[1], -1), NewTopic(NAMES[1], 2)]
        outcomes = await broker.topics.create_all([*asked, *asked])
        assert isinstance(outcomes[0], Topic)
        assert isinstance(outcomes[2], Topic), "the one before asked for what there can't be"
        assert [type(each) for each in outcomes[3::2]] == [TopicExistsError, TopicExistsError]
        found = await asyncio.gather(*(broker.topics.get_or_create(NAMES[2]) for _ in range(9)))
        assert len(set(found)) == 1


async def test_deleted_topics_share_a_transaction(tmp_path: Path, transactions: list[None]) -> None:
    async with running(tmp_path) as broker:
        topics = await made(broker)
        await broker.topics.delete(topics[0])
        del transactions[:]
        outcomes = await broker.topics.delete_all([*topics, topics[1]])
        assert len(transactions) <= 2, "theirs, and one that forgets folders that are gone"
        assert [type(each) for each in outcomes] == [
            UnknownTopicError,
            *[type(None)] * (COUNT - 1),
            UnknownTopicError,
        ]
        assert broker.topics.all() == []
    assert not [*(tmp_path / "topics").glob("[0-9a-f]*[0-9a-f]/*.log")]
    async with running(tmp_path) as broker:
        assert broker.topics.all() == []


async def test_a_namespace_goes_with_all_of_its_topics(tmp_path: Path) -> None:
    shop = NamespaceName("public", "shop")
    count = TOPICS_CHANGED_TOGETHER + 3
    async with running(tmp_path) as broker:
        kept = await made(broker, NAMES[:1])
        await made(broker, [TopicName(*shop, f"t{number}") for number in range(count)])
        await broker.topics.delete_namespace(shop)
        assert broker.topics.all() == kept
        assert broker.namespaces.get(shop) is None
    async with running(tmp_path) as broker:
        assert [topic.name for topic in broker.topics.all()] == NAMES[:1]


async def test_a_kafka_request_for_many_topics_is_one_group(
    tmp_path: Path, transactions: list[None]
) -> None:
    types = api("CreateTopics").request
    async with running(tmp_path) as broker:
        dialog = Dialog(broker)
        await made(broker, NAMES[:1])
        del transactions[:]
        topics = [
            types.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in ("t0", "a", "b", "b", "c/d", "e")
        ]
        answer = await dialog.ask("CreateTopics", 7, topics=topics, timeout_ms=1000)
        assert [each.error_code for each in answer.topics] == [
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.NONE,
        ]
        for each in (answer.topics[1], answer.topics[5]):
            found = broker.topics.by_kafka_name(each.name)
            assert found is not None
            assert found.id == each.topic_id
        assert len(transactions) == 1

        asked = api("Metadata").request.MetadataRequestTopic
        described = await dialog.ask(
            "Metadata", 9, topics=[asked(name=f"first-use-{number}") for number in range(COUNT)]
        )
        assert {each.error_code for each in described.topics} == {ErrorCode.NONE}
        assert len(transactions) == 2

        names = [topic.name.kafka for topic in broker.topics.all()]
        answer = await dialog.ask("DeleteTopics", 4, topic_names=[*names, "gone"], timeout_ms=1000)
        codes = {each.name: each.error_code for each in answer.responses}
        assert codes.pop("gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == dict.fromkeys(names, ErrorCode.NONE)
        assert broker.topics.all() == []


async def test_what_is_asked_for_as_a_group_ends_is_done() -> None:
    groups: list[Sequence[int]] = []

    async def double(asked: Sequence[int]) -> list[int | Exception]:
        groups.append(asked)
        return [2 * each if each else ValueError("nothing") for each in asked]

    joined = Joined(double, "doubling")
    again: list[asyncio.Future[int]] = []
    first = joined.ask(1)
    first.add_done_callback(lambda _: again.append(joined.ask(2)))
    assert await first == 2
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await again[0] == 4
        outcomes = await joined.ask_all([0, *range(1, 2 * TOPICS_CHANGED_TOGETHER)])
    assert isinstance(outcomes[0], ValueError)
    assert outcomes[1:] == [2 * each for each in range(1, 2 * TOPICS_CHANGED_TOGETHER)]
    assert [len(group) for group in groups] == [1, 1, *[TOPICS_CHANGED_TOGETHER] * 2]


async def test_nothing_is_begun_for_whoever_left_and_a_bug_is_heard_of() -> None:
    begun: list[str] = []

    async def fail(asked: Sequence[str]) -> list[str | Exception]:
        begun.extend(asked)
        raise RuntimeError("a bug")

    joined = Joined(fail, "failing")
    left, stays = joined.ask("left"), joined.ask("stays")
    left.cancel()
    with pytest.raises(RuntimeError, match="a bug"):
        await stays
    assert begun == ["stays"]
