"""Goal: what a broker refuses to start with, or keeps closed, `penstock recover` shows and ends."""

from __future__ import annotations

import asyncio
import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.broker.broker import Broker
from penstock.broker.errors import DataFolderError
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.storage import Storage
from penstock.cli.app import app
from penstock.cli.failure import CommandError
from penstock.log.header import Magic, build_header
from penstock.log.layout import CLUSTER_ID_FILE, DATABASE_FILE, IDENTITY_FILE
from penstock.server.data_folder import DataFolderLock
from running import running

ORDERS = TopicName("public", "shop", "orders")
BILLS = TopicName("acme", "shop", "bills")


async def partition_of(broker: Broker, name: TopicName, index: int = 0) -> Partition:
    topic = broker.topics.get(name)
    assert topic is not None
    await topic.partitions[index].opened()
    return topic.partitions[index]


async def append(partition: Partition, body: bytes = b"hello", **fields: int) -> int:
    values = {"record_count": 1, "base_timestamp": 1, "max_timestamp": 1, **fields}
    offset = partition.append([build_header(Magic.KAFKA, body, **values) + body])
    await partition.durable(offset)
    return offset


async def read(partition: Partition) -> int:
    """How many messages can be read."""
    offset, count = partition.start_offset, 0
    while parts := await partition.read(offset, 1, Magic.KAFKA):
        offset += len(parts)
        count += len(parts)
    return count


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics with two partitions of three messages each, after four starts."""
    folder = tmp_path_factory.mktemp("template") / "data"
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "data"))


async def fill(folder: Path) -> None:
    async with running(folder) as broker:
        doomed = await broker.topics.create(ORDERS._replace(topic="doomed"), 3)
        for name in (ORDERS, BILLS):
            await broker.topics.create(name, 2, config={"max_message_bytes": "1000"})
        await broker.topics.delete(doomed)
    for _ in range(3):
        async with running(folder) as broker:
            for name, index in product((ORDERS, BILLS), (0, 1)):
                await append(
                    await partition_of(broker, name, index),
                    producer_id=41,
                    producer_epoch=0,
                    base_sequence=broker.cluster.this_node.epoch - 1,
                )


def remove_database(data: Path) -> None:
    for file in data.glob(f"{DATABASE_FILE}*"):
        file.unlink()


def folder_of(data: Path, name: TopicName) -> Path:
    for folder in (data / "topics").iterdir():
        if json.loads((folder / IDENTITY_FILE).read_text())["topic"] == name.topic:
            return folder
    raise AssertionError(name)


def recover(data: Path, *options: str) -> tuple[int, Any]:
    """Run the command; return its exit code and what it printed."""
    command = ["recover", "--data-folder", str(data), "--format", "json", *options]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    return result.exit_code, json.loads(result.stdout)


async def recovered(data: Path, *options: str) -> tuple[int, Any]:
    """Run the command beside an event loop: it brings its own."""
    return await asyncio.to_thread(recover, data, *options)


def test_what_is_sound_is_left_alone(data: Path) -> None:
    before = {file: file.read_bytes() for file in data.rglob("*.json")}
    assert recover(data) == (0, {"done": [], "findings": []})
    assert {file: file.read_bytes() for file in data.rglob("*.json")} == before


async def test_the_catalogue_is_made_again_of_the_folders(data: Path) -> None:
    async with running(data) as broker:
        await broker.topics.create(ORDERS._replace(topic="without-partitions"), 0)
        before = {
            topic.name: (
                *(topic.id, topic.iggy_topic_id, topic.config.explicit, topic.created_at_us),
                [partition.id for partition in topic.partitions],
            )
            for topic in broker.topics.all()
        }
        streams = {each.name: each.stream_id for each in broker.namespaces.all()}
        epoch, cluster_id = broker.cluster.this_node.epoch, broker.cluster.id
    remove_database(data)
    code, shown = await recovered(data)
    assert code == 1
    assert not (data / DATABASE_FILE).exists(), "nothing was asked for"
    assert {each["problem"] for each in shown["findings"]} == {
        "database missing",
        "topic not in database",
    }
    assert {each["remedy"] for each in shown["findings"]} == {"--rebuild"}
    code, shown = await recovered(data, "--rebuild")
    assert (code, shown["findings"]) == (0, [])
    async with running(data) as broker:
        assert {
            topic.name: (
                *(topic.id, topic.iggy_topic_id, topic.config.explicit, topic.created_at_us),
                [partition.id for partition in topic.partitions],
            )
            for topic in broker.topics.all()
        } == before
        assert {each.name: each.stream_id for each in broker.namespaces.all()} == streams
        assert (broker.cluster.this_node.epoch, broker.cluster.id) == (epoch + 1, cluster_id)
        assert await read(await partition_of(broker, BILLS, 1)) == 3
        assert await broker.producer_ids.take() > 41
        new = await broker.topics.create(ORDERS._replace(topic="new"), 1)
        assert new.partitions[0].id > max(each for *_, ids in before.values() for each in ids)


async def test_an_older_database_gets_what_came_after_it(data: Path) -> None:
    shutil.copy(data / DATABASE_FILE, data / "older")
    async with running(data) as broker:
        await append(await partition_of(broker, ORDERS))
        new = await broker.topics.create(ORDERS._replace(topic="new"), 1)
        await append(new.partitions[0])
    async with running(data) as broker:
        await append(await partition_of(broker, ORDERS))
    (data / "older").replace(data / DATABASE_FILE)
    with pytest.raises(DataFolderError):
        await Broker.open(data, BrokerSettings())
    assert (await recovered(data))[0] == 1
    assert (await recovered(data, "--rebuild"))[0] == 0
    async with running(data) as broker:
        assert await read(await partition_of(broker, ORDERS)) == 5
        assert await read(await partition_of(broker, new.name)) == 1


async def test_partitions_that_were_deleted_do_not_come_back(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_short(*_: object) -> list[Exception | None]:
        return [OSError("power is gone")]

    with monkeypatch.context() as crash:
        crash.setattr(Storage, "doom", cut_short)
        crash.setattr(Storage, "remove_partitions", cut_short)
        async with running(data) as broker:
            partition = await partition_of(broker, ORDERS, 1)
            topic = broker.topics.get(ORDERS)
            assert topic is not None
            await broker.topics.remove_partitions(topic, 1)
    assert (folder_of(data, ORDERS) / "1").exists()
    assert await recovered(data) == (0, {"findings": [], "done": []})
    await recovered(data, "--rebuild")
    async with running(data) as broker:
        assert not broker.topics.has_partition(partition.id)


async def test_the_epoch_is_found_in_the_logs_where_nothing_else_has_it(data: Path) -> None:
    for file in (data / IDENTITY_FILE, data / CLUSTER_ID_FILE):
        file.unlink()
    remove_database(data)
    assert (await recovered(data, "--rebuild"))[0] == 0
    async with running(data) as broker:
        assert await read(await partition_of(broker, ORDERS)) == 3
        assert broker.cluster.this_node.epoch == 4


async def test_exactly_the_loss_that_is_named_is_accepted(data: Path) -> None:
    async with running(data) as broker:
        partition = await partition_of(broker, ORDERS)
        offsets = {partition.id: CommittedOffset(3)}
        await broker.offsets.commit(OffsetOwner("kafka", "group"), offsets)
    shutil.rmtree(folder_of(data, ORDERS) / "0")
    (folder_of(data, ORDERS) / "1" / f"{0:020d}.log").unlink()
    shutil.rmtree(folder_of(data, BILLS) / "1")
    names = {"shop.orders-0": "log missing", "shop.orders-1": "messages missing"}
    code, shown = await recovered(data)
    assert code == 1
    assert {each["about"]: each["problem"] for each in shown["findings"]} == {
        **names,
        "acme.shop.bills-1": "log missing",
    }
    options = [text for name in names for text in ("--accept-loss", name)]
    code, shown = await recovered(data, *options)
    assert code == 1
    assert [each["about"] for each in shown["findings"]] == ["acme.shop.bills-1"]
    async with running(data) as broker:
        for index in (0, 1):
            # No offset that somebody may have seen is given again.
            partition = await partition_of(broker, ORDERS, index)
            assert (partition.start_offset, await append(partition)) == (3, 3)
        assert await read(await partition_of(broker, BILLS)) == 3
    assert (await recovered(data, "--accept-loss", "acme.shop.bills-1"))[0] == 0


def test_a_loss_that_is_none_is_not_accepted(data: Path) -> None:
    shutil.rmtree(folder_of(data, ORDERS) / "0")
    with pytest.raises(CommandError, match=r"nothing is missing of shop\.orders-1"):
        recover(data, "--accept-loss", "shop.orders-0", "--accept-loss", "shop.orders-1")
    assert not (folder_of(data, ORDERS) / "0").exists()


def test_a_database_of_another_cluster_is_not_mixed_in(data: Path) -> None:
    (data / CLUSTER_ID_FILE).write_text("another")
    assert recover(data)[1]["findings"][0]["problem"] == "database of another cluster"
    with pytest.raises(CommandError, match="put the right one back"):
        recover(data, "--rebuild")


def test_a_folder_in_use_is_left_alone(data: Path) -> None:
    with DataFolderLock(data), pytest.raises(CommandError, match="in use"):
        recover(data)
    with pytest.raises(CommandError, match="there is no data folder"):
        recover(data / "nowhere")


def test_a_folder_of_no_broker_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    for folder in (".", "letters", "nowhere", "\x01"):
        result = CliRunner().invoke(app, ["recover", "--rebuild", "--data-folder", folder])
        assert isinstance(result.exception, CommandError)
        assert "there is no data folder" in str(result.exception)
    assert [path.name for path in tmp_path.rglob("*")] == ["letters"]


def test_people_read_a_table(data: Path) -> None:
    remove_database(data)
    result = CliRunner().invoke(app, ["recover", "--data-folder", str(data)])
    assert result.exit_code == 1
    assert "database missing" in result.stdout
