"""Goal: nothing that is gone, foreign or older passes for an empty beginning.

Method: take it away, or put something else in its place, and start again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from patience import until
from penstock.broker.broker import Broker
from penstock.broker.errors import DataFolderError, StorageError
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.topic import Topic
from penstock.log.errors import LogClosedError, LogNotOpenError
from penstock.log.header import Magic, build_header
from penstock.log.layout import CLUSTER_ID_FILE, DATABASE_FILE, IDENTITY_FILE
from running import running

ORDERS = TopicName("public", "default", "orders")
BILLS = ORDERS._replace(topic="bills")


def batch() -> list[bytearray]:
    body = b"hello"
    header = build_header(Magic.KAFKA, body, record_count=1, base_timestamp=1, max_timestamp=1)
    return [header + body]


@pytest.fixture
async def orders(tmp_path: Path) -> Path:
    """The folder of a topic with two partitions of one message each, beside another topic's."""
    async with running(tmp_path) as broker:
        for name in (ORDERS, BILLS):
            topic = await broker.topics.create(name, 2)
            for partition in topic.partitions:
                await partition.durable(partition.append(batch()))
        found = broker.topics.get(ORDERS)
        assert found is not None
    return tmp_path / "topics" / found.id.hex


def topic_of(broker: Broker, name: TopicName = ORDERS) -> Topic:
    found = broker.topics.get(name)
    assert found is not None
    return found


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.rglob(pattern))


def first_segment(folder: Path) -> Path:
    return folder / "0" / f"{0:020d}.log"


def remove_first_segment(folder: Path) -> None:
    first_segment(folder).unlink()


def empty_partition(folder: Path) -> None:
    for file in (folder / "0").iterdir():
        file.unlink()


def swap(folder: Path) -> None:
    """The partitions' folders change places."""
    (folder / "0").rename(folder / "x")
    (folder / "1").rename(folder / "0")
    (folder / "x").rename(folder / "1")


def change_identity(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "0" / IDENTITY_FILE
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (shutil.rmtree, "is missing"),
        (lambda folder: shutil.rmtree(folder / "0"), "is missing"),
        (empty_partition, "is missing"),
        (remove_first_segment, "offsets 0..0 are missing"),
        (swap, "belongs elsewhere: to orders-1"),
        (change_identity(cluster="another"), "of cluster another"),
        (change_identity(format=99), "is not of format 1"),
        (lambda folder: (folder / "0" / IDENTITY_FILE).write_text("{"), "can't be read"),
    ],
    ids=["topic", "partition", "files", "segment", "swapped", "cluster", "format", "rubbish"],
)
async def test_a_log_that_is_not_there_is_closed_and_the_others_serve(
    tmp_path: Path,
    orders: Path,
    damage: Callable[[Path], None],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    damage(orders)
    before = files(tmp_path, "*.log")
    async with running(tmp_path) as broker:
        with pytest.raises(LogNotOpenError):
            await topic_of(broker).partitions[0].opened()
        assert said in caplog.text
        assert "penstock recover" in caplog.text
        for partition in topic_of(broker, BILLS).partitions:
            await partition.opened()
            assert partition.end_offset == 1
    assert files(tmp_path, "*.log") == before, "nothing was begun in its place"


async def test_a_missing_folder_is_reported_at_the_start(
    tmp_path: Path, orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(orders)
    async with running(tmp_path):
        assert f"topic orders is closed: {orders} is missing" in caplog.text


@pytest.mark.usefixtures("orders")
async def test_folders_without_a_database_are_refused(tmp_path: Path) -> None:
    for file in files(tmp_path, f"{DATABASE_FILE}*"):
        file.unlink()
    with pytest.raises(DataFolderError, match=r"missing, and the folders of 2 topics.*recover"):
        await Broker.open(tmp_path, BrokerSettings())
    assert not (tmp_path / DATABASE_FILE).exists()


@pytest.mark.usefixtures("orders")
async def test_a_database_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / DATABASE_FILE, tmp_path / DATABASE_FILE)
    with pytest.raises(DataFolderError, match=r"of cluster .* recover"):
        await Broker.open(tmp_path, BrokerSettings())


async def test_an_older_database_is_refused(tmp_path: Path, orders: Path) -> None:
    shutil.copy(tmp_path / DATABASE_FILE, tmp_path / "older")
    async with running(tmp_path) as broker:
        partition = topic_of(broker).partitions[0]
        await partition.opened()
        await partition.durable(partition.append(batch()))
    shutil.copy(tmp_path / "older", tmp_path / DATABASE_FILE)
    size = first_segment(orders).stat().st_size
    with pytest.raises(DataFolderError, match=r"older than the folders .* recover"):
        await Broker.open(tmp_path, BrokerSettings())
    assert first_segment(orders).stat().st_size == size


async def test_folders_that_a_release_before_left_get_their_identity(
    tmp_path: Path, orders: Path
) -> None:
    for file in files(tmp_path, IDENTITY_FILE):
        file.unlink()
    (orders / "0" / "checkpoint").unlink()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as connection, connection:
        connection.execute(
            "DELETE FROM properties WHERE name IN ('cluster_id', 'folders_are_identified')"
        )
    for _ in range(2):
        async with running(tmp_path) as broker:
            for partition in topic_of(broker).partitions:
                await partition.opened()
                assert partition.end_offset == 1
    assert json.loads((orders / IDENTITY_FILE).read_text())["topic"] == "orders"
    empty_partition(orders)  # From now on it is missed.
    async with running(tmp_path) as broker:
        with pytest.raises(LogNotOpenError):
            await topic_of(broker).partitions[0].opened()


async def test_the_cluster_id_comes_back_from_the_database(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        cluster_id = broker.cluster.id
    (tmp_path / CLUSTER_ID_FILE).unlink()
    async with running(tmp_path) as broker:
        assert broker.cluster.id == cluster_id


async def test_a_renamed_topic_is_still_itself(tmp_path: Path, orders: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.configure(topic_of(broker), lambda _: {}, name="sales")
        assert json.loads((orders / IDENTITY_FILE).read_text())["topic"] == "sales"
        await broker.topics.rename_namespace(ORDERS.in_namespace, NamespaceName("public", "shop"))
        assert json.loads((orders / IDENTITY_FILE).read_text())["namespace"] == "shop"
    async with running(tmp_path) as broker:
        partition = topic_of(broker, TopicName("public", "shop", "sales")).partitions[0]
        await partition.opened()
        assert partition.end_offset == 1


async def test_what_a_crash_left_of_a_creation_is_removed(tmp_path: Path, orders: Path) -> None:
    unfinished = orders.with_name("0" * 32)
    (unfinished / "0").mkdir(parents=True)
    for folder in ("", "0"):
        shutil.copy(orders / folder / IDENTITY_FILE, unfinished / folder / IDENTITY_FILE)
    async with running(tmp_path):
        pass
    assert files(tmp_path / "topics", "0" * 32) == []
    assert files(tmp_path / "topics", orders.name) == [orders]


async def test_a_log_that_is_removed_under_the_broker_is_closed_and_the_others_serve(
    tmp_path: Path, orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as broker:
        for name in (ORDERS, BILLS):
            for partition in topic_of(broker, name).partitions:
                await partition.opened()
        shutil.rmtree(orders / "0")
        lost, kept = topic_of(broker).partitions
        await until(lambda: "orders-0 is closed" in caplog.text)
        with pytest.raises(LogClosedError):
            lost.append(batch())
        with pytest.raises(LogClosedError):
            await lost.read(0, 1, Magic.KAFKA)
        await kept.durable(kept.append(batch()))
        assert caplog.text.count("is closed") == 1
    async with running(tmp_path) as broker:
        with pytest.raises(LogNotOpenError):
            await topic_of(broker).partitions[0].opened()


async def test_nothing_is_made_in_a_data_folder_that_is_gone(tmp_path: Path) -> None:
    data_folder = tmp_path / "data"
    async with running(data_folder) as broker:
        data_folder.rename(tmp_path / "away")
        with pytest.raises(StorageError):
            await broker.topics.create(ORDERS, 1)
        assert files(tmp_path, "topics") == [tmp_path / "away" / "topics"]
