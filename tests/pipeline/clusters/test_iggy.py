"""Topics of an Iggy server, which is spoken to in Iggy's protocol alone."""

from __future__ import annotations

import asyncio
import re
import uuid
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from apache_iggy import IggyClient, Partitioning, SendMessage
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from iggy_clients import connected
from penstock.clients.iggy import client as iggy_clients
from penstock.clients.kafka.connection import ClientConnection
from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.option_values import OptionError
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_tasks
from source_rows import rows_read
from tls_proxy import tls_in_front_of

LOGIN = {"user": "iggy", "password": "iggy"}


async def _filled(address: str, stream: str, partitions: int, messages: int) -> IggyClient:
    client = await connected(address)
    await client.create_stream(stream)
    await client.create_topic(stream, "orders", partitions)
    for partition in range(partitions):
        await send(client, stream, partition, 0, messages)
    return client


async def send(client: IggyClient, stream: str, partition: int, first: int, end: int) -> None:
    for start in range(first, end, 7):
        batch = [SendMessage(f"{partition}:{n}") for n in range(start, min(start + 7, end))]
        await client.send_messages(stream, "orders", Partitioning.partition_id(partition), batch)


@pytest.fixture
def stream(shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stream with a topic of two partitions; whoever speaks Kafka's protocol fails."""
    name = f"s{uuid.uuid4().hex[:8]}"
    asyncio.run(_filled(shared_server.iggy, name, 2, 25))

    def refuse(*_: object) -> None:
        raise AssertionError("Kafka's protocol was spoken")

    monkeypatch.setattr(ClientConnection, "_connected", refuse)
    return name


def values(rows: list[dict[str, Any]]) -> dict[int, list[tuple[int, bytes]]]:
    found: dict[int, list[tuple[int, bytes]]] = {}
    for row in rows:
        found.setdefault(row["partition"], []).append((row["offset"], row["value"]))
    return found


def test_all_partitions_are_read_over_iggys_protocol_alone(
    stream: str, shared_server: BrokerProcess
) -> None:
    rows = rows_read(f"iggy://{shared_server.iggy}", f"{stream}/orders", **LOGIN)
    assert values(rows) == {
        partition: [(n, f"{partition}:{n}".encode()) for n in range(25)] for partition in (0, 1)
    }
    assert {row["topic"] for row in rows} == {f"{stream}/orders"}
    assert all(row["timestamp"].year >= 2024 for row in rows)


def test_a_task_of_several_ranges_logs_in_once(
    stream: str, shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"penstock.bootstrap.servers": f"iggy://{shared_server.iggy}", **LOGIN}
    options = parse({**given, "subscribe": f"{stream}/orders"}, streaming=False)
    with open_cluster(options) as cluster:
        planner = Planner(options, cluster)
        tasks = planner.tasks(*planner.batch())
    connect = Mock(wraps=iggy_clients.connect)
    monkeypatch.setattr(iggy_clients, "connect", connect)
    assert sum(batch.num_rows for batch in read_tasks(tasks, options)) == 50
    assert len(tasks) > 1
    assert connect.call_count == 1


def test_a_range_is_read_from_the_middle_of_a_batch(
    stream: str, shared_server: BrokerProcess
) -> None:
    offsets = {
        "startingOffsets": f'{{"{stream}/orders": {{"0": 3, "1": -2}}}}',
        "endingOffsets": f'{{"{stream}/orders": {{"0": 12, "1": 1}}}}',
        "minPartitions": "4",
    }
    rows = rows_read(f"iggy://{shared_server.iggy}", f"{stream}/orders", **LOGIN, **offsets)
    assert [offset for offset, _ in values(rows)[0]] == list(range(3, 12))
    assert [offset for offset, _ in values(rows)[1]] == [0]


def test_topics_are_found_by_a_pattern_and_known_by_an_id(
    stream: str, shared_server: BrokerProcess
) -> None:
    given = {"penstock.bootstrap.servers": f"iggy://{shared_server.iggy}", **LOGIN}
    options = parse({**given, "subscribePattern": f"{stream}/.*"}, streaming=True)
    with open_cluster(options) as cluster:
        assert cluster.topics_like(re.compile(f"{stream}/o.*")) == [f"{stream}/orders"]
        (before,) = cluster.topic_ids([f"{stream}/orders"]).values()
        asyncio.run(_anew(shared_server.iggy, stream))
        assert cluster.topic_ids([f"{stream}/orders"]) != {f"{stream}/orders": before}
        assert cluster.partitions([f"{stream}/orders", f"{stream}/none"]) == {f"{stream}/orders": 1}
        assert Planner(options, cluster).latest() == {(f"{stream}/orders", 0): 0}


async def _anew(address: str, stream: str) -> None:
    client = await connected(address)
    await client.delete_topic(stream, "orders")
    await client.create_topic(stream, "orders", 1)


def test_tls_and_the_log_in_are_looked_at_before_any_row(
    stream: str, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    with tls_in_front_of(shared_server.iggy, tmp_path) as (address, certificate):
        servers = f"iggy+tls://{address}"
        trusted = {**LOGIN, "tlsCaFile": str(certificate)}
        assert len(rows_read(servers, f"{stream}/orders", **trusted)) == 50
        with pytest.raises(SourceError, match="certificate verify failed"):
            rows_read(servers, f"{stream}/orders", **LOGIN)
        with pytest.raises(SourceError, match="Correct the options user and password"):
            rows_read(servers, f"{stream}/orders", **{**trusted, "password": "wrong"})


@pytest.mark.parametrize(
    ("topic", "message"),
    [("orders", "name stream/topic"), ("none/orders", "no topic named none/orders")],
)
def test_a_topic_that_is_not_there_is_named(
    topic: str, message: str, shared_server: BrokerProcess
) -> None:
    with pytest.raises(SourceError, match=message):
        rows_read(f"iggy://{shared_server.iggy}", topic, **LOGIN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.group.id": "g"}, "kafka.group.id is for Kafka's protocol"),
        ({"readMode": "log"}, "readMode is for Kafka's protocol"),
        ({"user": "iggy"}, "give user and password, or token alone"),
        ({"tlsCaFile": "ca.pem"}, "tlsCaFile is for TLS"),
    ],
)
def test_options_that_contradict_the_scheme_are_refused(
    given: dict[str, str], message: str
) -> None:
    base = {"penstock.bootstrap.servers": "iggy://h:1", "subscribe": "s/t"}
    with pytest.raises(OptionError, match=message):
        parse({**base, **given}, streaming=False)


def test_a_stream_of_spark_goes_on_from_its_checkpoint(
    spark: SparkSession, stream: str, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    options = {"penstock.bootstrap.servers": f"iggy://{shared_server.iggy}", **LOGIN}
    reader = spark.readStream.format("penstock").options(**options)
    rows = reader.option("subscribe", f"{stream}/orders").option("startingOffsets", "earliest")

    def run() -> int:
        writer = rows.load().writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start(str(tmp_path / "table")).awaitTermination()
        return spark.read.parquet(str(tmp_path / "table")).count()

    assert run() == 50
    asyncio.run(_more(shared_server.iggy, stream))
    assert run() == 60


async def _more(address: str, stream: str) -> None:
    await send(await connected(address), stream, 1, 25, 35)
