"""Topics, partitions and committed offsets last, and a deleted topic leaves nothing behind."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from partition_logs import open_logs
from patience import until
from penstock.broker.broker import Broker
from penstock.broker.errors import (
    InvalidPartitionCountError,
    NamespaceExistsError,
    TopicExistsError,
    UnknownNamespaceError,
    UnknownPartitionError,
    UnknownTopicError,
)
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.producers.idempotence import ProducerStates
from penstock.broker.settings import BrokerSettings, Flush
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.log.header import Magic, build_header, read_header
from penstock.log.layout import topic_directory

ORDERS = TopicName("public", "default", "orders")


@asynccontextmanager
async def running(folder: Path, settings: BrokerSettings | None = None) -> AsyncIterator[Broker]:
    broker = await Broker.open(folder, settings or BrokerSettings())
    await open_logs(broker)
    try:
        yield broker
    finally:
        await broker.close()


def batch(body: bytes = b"hello", magic: Magic = Magic.KAFKA, **fields: int) -> list[bytearray]:
    values = {"record_count": 1, "base_timestamp": 1, "max_timestamp": 1, **fields}
    return [build_header(magic, body, **values) + body]


async def test_a_topic_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        created = await broker.topics.create(ORDERS, 3, config={"segment_bytes": "2000000"})
        ids = [partition.id for partition in created.partitions]
        for body in (b"one", b"two"):
            offset = created.partitions[1].append(batch(body))
            await created.partitions[1].flushed()
            await created.partitions[1].durable(offset)
    async with running(tmp_path) as broker:
        topic = broker.topics.get(ORDERS)
        assert topic is not None
        assert topic is broker.topics.by_kafka_name("orders") is broker.topics.by_id(created.id)
        assert topic.config.explicit == {"segment_bytes": "2000000"}
        assert [partition.id for partition in topic.partitions] == ids
        assert [partition.end_offset for partition in topic.partitions] == [0, 2, 0]
        (stored,) = await topic.partitions[1].read(0, 1 << 20, Magic.KAFKA)
        assert bytes(stored).endswith(b"two")


async def test_partition_ids_are_never_given_twice(tmp_path: Path) -> None:
    seen: set[int] = set()
    async with running(tmp_path) as broker:
        for _ in range(3):
            topic = await broker.topics.create(ORDERS, 2)
            ids = {partition.id for partition in topic.partitions}
            assert not ids & seen
            seen |= ids
            await broker.topics.delete(topic)


async def test_two_at_once_get_the_same_new_topic(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topics = await asyncio.gather(*(broker.topics.get_or_create(ORDERS) for _ in range(10)))
        assert len({topic.id for topic in topics}) == 1
        with pytest.raises(TopicExistsError):
            await broker.topics.create(ORDERS, 1)


async def test_one_name_in_kafka_is_one_topic(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create(TopicName.from_kafka("shop.orders"), 1)
        with pytest.raises(TopicExistsError):
            await broker.topics.create(TopicName("public", "shop", "orders"), 1)


async def test_more_partitions_last_and_fewer_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        await broker.topics.add_partitions(topic, 3)
        for total in (0, 2, 3):
            with pytest.raises(InvalidPartitionCountError):
                await broker.topics.add_partitions(topic, total)
    async with running(tmp_path) as broker:
        topic = broker.topics.by_kafka_name("orders")
        assert topic is not None
        assert [partition.index for partition in topic.partitions] == [0, 1, 2]
        with pytest.raises(UnknownPartitionError):
            topic.partition(3)


@pytest.mark.parametrize("count", [-1, 10_001])
async def test_partition_counts_that_no_topic_has(tmp_path: Path, count: int) -> None:
    async with running(tmp_path) as broker:
        with pytest.raises(InvalidPartitionCountError):
            await broker.topics.create(ORDERS, count)
        assert broker.topics.all() == []


async def test_deletion_wakes_readers_and_removes_everything(tmp_path: Path) -> None:
    owner = OffsetOwner("kafka", "group")
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1)
        partition = topic.partitions[0]
        partition.append(batch())
        await partition.flushed()
        await broker.offsets.commit(owner, {partition.id: CommittedOffset(1)})
        woken = []
        partition.add_listener(lambda: woken.append(True))
        await broker.topics.delete(topic)
        assert woken
        assert broker.topics.all() == []
        assert broker.offsets.get(owner, partition.id) is None
        await until(lambda: not any((tmp_path / "topics").iterdir()))
        with pytest.raises(UnknownTopicError):
            partition.append(batch())
        with pytest.raises(UnknownTopicError):
            await partition.read(0, 100, Magic.KAFKA)
        with pytest.raises(UnknownTopicError):
            await broker.topics.delete(topic)


async def test_a_deletion_that_was_cut_short_is_finished_and_strangers_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path):
        pass
    doomed = topic_directory(tmp_path, uuid.uuid4()).with_suffix(".deleted")
    stranger = topic_directory(tmp_path, uuid.uuid4())
    for folder in (doomed, stranger):
        folder.mkdir()
        (folder / "file").write_text("x")
    async with running(tmp_path):
        await until(lambda: not doomed.exists())
        assert stranger.exists()
        assert str(stranger) in caplog.text


async def test_a_repeated_batch_of_an_idempotent_producer_is_written_once(tmp_path: Path) -> None:
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1)).partitions[0]
        assert partition.append(batch()) == 0
        assert partition.append(batch(**sent)) == 1
        assert partition.append(batch(**sent)) == 1
        await partition.flushed()
        assert partition.end_offset == 2
    async with running(tmp_path) as broker:
        topic = broker.topics.by_kafka_name("orders")
        assert topic is not None
        assert topic.partitions[0].append(batch(**sent)) == 1
        await topic.partitions[0].flushed()
        assert topic.partitions[0].end_offset == 2


async def test_producers_are_found_in_the_log_where_their_snapshot_is_of_another_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProducerStates, "snapshot", lambda _: b"of another version")
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1)).partitions[0]
        partition.append(batch())
        partition.append(batch(**sent))
        await partition.flushed()
    async with running(tmp_path) as broker:
        topic = broker.topics.by_kafka_name("orders")
        assert topic is not None
        assert topic.partitions[0].append(batch(**sent)) == 1
        await topic.partitions[0].flushed()
    assert "read from its beginning" in caplog.text


async def test_append_stamps_offset_and_order(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1)).partitions[0]
        assert [partition.append(batch(record_count=3)) for _ in range(3)] == [0, 3, 6]
        await partition.flushed()
        (stored,) = await partition.read(4, 1, Magic.KAFKA)
        assert read_header(stored).base_offset == 3


async def test_a_topic_has_its_own_flush_policy(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1, config={"flush": "written"})
        assert topic.config.flush is Flush.WRITTEN


async def test_streams_take_the_lowest_free_number(tmp_path: Path) -> None:
    names = [NamespaceName("public", name) for name in "abc"]
    async with running(tmp_path) as broker:
        for name in names:
            await broker.namespaces.create(name)
        await broker.namespaces.delete(names[1])
        again = await broker.namespaces.create(NamespaceName("public", "d"))
        assert again.stream_id == 1
    async with running(tmp_path) as broker:
        assert [space.name.namespace for space in broker.namespaces.all()] == ["a", "d", "c"]


async def test_new_name_and_configuration_of_a_topic_last(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 1, config={"max_message_bytes": "1"})
        await broker.topics.create(ORDERS._replace(topic="taken"), 1)
        with pytest.raises(TopicExistsError):
            await broker.topics.configure(topic, lambda _: {}, name="taken")
        await broker.topics.configure(topic, lambda _: {"max_message_bytes": "2"})
        await broker.topics.configure(topic, lambda _: {"max_message_bytes": "2"}, name="bills")
        assert broker.topics.get(ORDERS) is broker.topics.by_kafka_name("orders") is None
    async with running(tmp_path) as broker:
        found = broker.topics.by_kafka_name("bills")
        assert found is not None
        assert (found.id, found.config.explicit) == (topic.id, {"max_message_bytes": "2"})
        await broker.topics.delete(found)
        with pytest.raises(UnknownTopicError):
            await broker.topics.configure(found, lambda _: {})


async def test_namespace_takes_its_topics_along(tmp_path: Path) -> None:
    shop, store = NamespaceName("public", "shop"), NamespaceName("acme", "store")
    async with running(tmp_path) as broker:
        empty = await broker.namespaces.create(NamespaceName("public", "empty"))
        topic = await broker.topics.create(TopicName(*shop, "orders"), 1)
        await broker.topics.create(TopicName("public", "default", "acme.taken.orders"), 1)
        with pytest.raises(TopicExistsError):
            await broker.topics.rename_namespace(shop, NamespaceName("acme", "taken"))
        with pytest.raises(NamespaceExistsError):
            await broker.topics.rename_namespace(shop, empty.name)
        with pytest.raises(UnknownNamespaceError):
            await broker.topics.rename_namespace(store, shop)
        await broker.topics.rename_namespace(shop, store)
        assert topic.name == TopicName(*store, "orders")
    async with running(tmp_path) as broker:
        assert broker.namespaces.get(shop) is None
        moved = broker.namespaces.get(store)
        assert moved is not None
        assert moved.stream_id == 1
        found = broker.topics.by_kafka_name("acme.store.orders")
        assert found is not None
        assert found.id == topic.id


async def test_a_topic_that_is_configured_while_its_namespace_moves_goes_along(
    tmp_path: Path,
) -> None:
    shop, store = NamespaceName("public", "shop"), NamespaceName("acme", "store")
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(TopicName(*shop, "orders"), 1)
        await asyncio.gather(
            broker.topics.rename_namespace(shop, store),
            broker.topics.configure(topic, lambda config: {**config.explicit, "segment_ms": "9"}),
            broker.topics.configure(
                topic, lambda config: {**config.explicit, "retention_ms": "5"}, name="bills"
            ),
        )
        anew = await broker.namespaces.create(shop)
        await broker.topics.create(TopicName(*shop, "orders"), 1)
        assert anew.name == shop
        assert (topic.name, topic.config.explicit) == (
            TopicName(*store, "bills"),
            {"segment_ms": "9", "retention_ms": "5"},
        )
    async with running(tmp_path) as broker:
        assert broker.topics.get(TopicName(*store, "bills")) is not None


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_stream_that_goes_or_moves_while_a_topic_waits_does_not_come_back(
    tmp_path: Path, *, is_deleted: bool
) -> None:
    shop, store = NamespaceName("public", "shop"), NamespaceName("public", "store")
    async with running(tmp_path) as broker:
        stream = await broker.namespaces.create(shop)
        change = (
            broker.topics.delete_namespace(shop)
            if is_deleted
            else broker.topics.rename_namespace(shop, store)
        )
        asked = broker.topics.create(TopicName(*shop, "orders"), 1, stream_id=stream.stream_id)
        _, refused = await asyncio.gather(change, asked, return_exceptions=True)
        assert isinstance(refused, UnknownNamespaceError)
        assert broker.namespaces.get(shop) is None
        assert not broker.topics.all()


async def test_namespace_is_deleted_with_its_topics(tmp_path: Path) -> None:
    shop = NamespaceName("public", "shop")
    async with running(tmp_path) as broker:
        await broker.topics.create(TopicName(*shop, "orders"), 2)
        other = await broker.topics.create(ORDERS, 1)
        await broker.topics.delete_namespace(shop)
        assert broker.topics.all() == [other]
        with pytest.raises(UnknownNamespaceError):
            await broker.topics.delete_namespace(shop)
    async with running(tmp_path) as broker:
        assert [found.name for found in broker.namespaces.all()] == [ORDERS.in_namespace]


async def test_committed_offsets_last(tmp_path: Path) -> None:
    owner = OffsetOwner("kafka", "group")
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 2)
        first, second = (partition.id for partition in topic.partitions)
        await broker.offsets.commit(owner, {first: CommittedOffset(5, 0, "note", 99)})
        await broker.offsets.commit(owner, {first: CommittedOffset(6), second: CommittedOffset(1)})
        await broker.offsets.delete(owner, [second])
    async with running(tmp_path) as broker:
        assert dict(broker.offsets.of_owner(owner)) == {first: CommittedOffset(6)}
        await broker.offsets.delete(owner)
        assert broker.offsets.owners("kafka") == []


async def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    seen: list[int] = []
    for _ in range(2):
        async with running(tmp_path) as broker:
            seen += await asyncio.gather(*(broker.producer_ids.take() for _ in range(1100)))
    assert len(set(seen)) == len(seen)


async def test_the_cluster_id_stays(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        first = broker.cluster.id
    async with running(tmp_path) as broker:
        assert broker.cluster.id == first
        assert len(first) == 22
