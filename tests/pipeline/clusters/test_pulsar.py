"""Topics of a Pulsar server, which is spoken to in Pulsar's protocol alone."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pulsar
import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.pulsar.client import MessageId
from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.clusters.pulsar import id_of, offset_of
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.option_values import OptionError
from penstock.pipeline.source.options import parse
from source_rows import rows_read
from tls_proxy import tls_in_front_of


def send(address: str, topic: str, first: int, end: int, **config: Any) -> None:
    """Send numbers to one partition, every tenth alone and the others in batches."""
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    client = pulsar.Client(address, logger=logger)
    batches = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=7, block_if_queue_full=True, **config
    )
    alone = client.create_producer(topic, batching_enabled=False, **config)
    for number in range(first, end):
        body = str(number).encode()
        if number % 10:
            batches.send_async(body, lambda *_: None, partition_key=f"k{number}")
        else:
            batches.flush()
            alone.send(body, partition_key=f"k{number}")
    batches.flush()
    client.close()


@pytest.fixture
def topic(shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic of two partitions with 60 numbers; whoever speaks Kafka's protocol now fails."""
    name = f"p{uuid.uuid4().hex[:8]}"
    with KafkaClient(shared_server.kafka) as client:
        client.create_topic(name, 2)
    send(shared_server.pulsar, f"{name}-partition-0", 0, 40)
    lz4 = pulsar.CompressionType.LZ4
    send(shared_server.pulsar, f"{name}-partition-1", 40, 60, compression_type=lz4)

    def refuse(*_: object) -> None:
        raise AssertionError("Kafka's protocol was spoken")

    monkeypatch.setattr(ClientConnection, "_connected", refuse)
    return name


def test_all_partitions_are_read_over_pulsars_protocol_alone(
    topic: str, shared_server: BrokerProcess
) -> None:
    for name in (topic, f"persistent://public/default/{topic}"):
        rows = rows_read(shared_server.pulsar, name)
        of = {index: [row for row in rows if row["partition"] == index] for index in (0, 1)}
        assert [int(row["value"]) for row in of[0]] == list(range(40))
        assert [int(row["value"]) for row in of[1]] == list(range(40, 60))
        assert all(row["key"] == b"k" + row["value"] for row in rows)
        assert {row["topic"] for row in rows} == {name}
        for each in of.values():
            offsets = [row["offset"] for row in each]
            assert offsets == sorted(set(offsets))


def test_each_row_is_in_one_of_two_ranges_wherever_they_meet(
    topic: str, shared_server: BrokerProcess
) -> None:
    everything = [row for row in rows_read(shared_server.pulsar, topic) if row["partition"] == 0]
    for place in (1, 5, 17, 39):  # Within batches, mostly.
        edge = json.dumps({topic: {"0": everything[place]["offset"]}})
        one = {"assign": json.dumps({topic: [0]})}
        before = rows_read(shared_server.pulsar, "", endingOffsets=edge, **one)
        behind = rows_read(shared_server.pulsar, "", startingOffsets=edge, **one)
        assert before == everything[:place]
        assert behind == everything[place:]


def test_topics_without_partitions_and_those_of_a_pattern(
    topic: str, shared_server: BrokerProcess
) -> None:
    plain = f"{topic}-plain"
    send(shared_server.pulsar, plain, 0, 3)
    assert [int(row["value"]) for row in rows_read(shared_server.pulsar, plain)] == [0, 1, 2]
    given = {"penstock.bootstrap.servers": shared_server.pulsar, "subscribePattern": "."}
    with open_cluster(parse(given, streaming=False)) as cluster:
        assert cluster.topics_like(re.compile(f"{topic}.*")) == [topic, plain]
        full = f"persistent://public/default/{topic}"
        assert cluster.topics_like(re.compile(f"{full}.*")) == [full, f"{full}-plain"]
        assert cluster.partitions([topic, plain, "none"]) == {topic: 2, plain: 1}


def test_a_namespace_may_have_very_many_topics(server: BrokerProcess) -> None:
    others = "o" * 200  # Their names alone are more than a command of a client's may be.
    with KafkaClient(server.kafka) as client:
        client.create_topic(others, 2500)
    send(server.pulsar, "persistent://public/default/alone", 0, 10)
    given = {"penstock.bootstrap.servers": server.pulsar, "subscribePattern": "a.*"}
    with open_cluster(parse(given, streaming=False)) as cluster:
        assert cluster.topics_like(re.compile("a.*")) == ["alone"]
        assert cluster.partitions(["alone", others]) == {"alone": 1, others: 2500}


def test_tls_is_spoken_with_those_whom_a_file_vouches_for(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    server = shared_server.pulsar.removeprefix("pulsar://")
    with tls_in_front_of(server, tmp_path) as (address, certificate):
        given = {"penstock.bootstrap.servers": f"pulsar+ssl://{address}", "subscribe": "none"}
        trusted = parse({**given, "tlsCaFile": str(certificate), "token": "t"}, streaming=False)
        with open_cluster(trusted) as cluster:
            assert cluster.partitions(["none"]) == {}
        with (
            open_cluster(parse(given, streaming=False)) as cluster,
            pytest.raises(SourceError, match="certificate verify failed"),
        ):
            cluster.partitions(["none"])


def test_ids_and_offsets_say_the_same() -> None:
    for place in (MessageId(0, 0), MessageId(7, 3), MessageId((1 << 28) - 1, (1 << 23) - 1)):
        if place != (0, 0):
            assert id_of(offset_of(place)) == place
        assert 0 <= offset_of(place) < 1 << 63
    for place in (MessageId(1 << 28, 0), MessageId(0, 1 << 23)):
        with pytest.raises(SourceError, match="does not fit into an offset"):
            offset_of(place)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.group.id": "g"}, "kafka.group.id is for Kafka's protocol"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger can't be set with pulsar://"),
        ({"startingTimestamp": "5"}, "startingTimestamp can't be set with pulsar://"),
        ({"filterPushdown": "true"}, "filterPushdown can't be set with pulsar://"),
        ({}, "set failOnDataLoss to false"),
    ],
)
def test_what_pulsar_can_not_give_is_refused(given: dict[str, str], message: str) -> None:
    base = {"penstock.bootstrap.servers": "pulsar://h:1", "subscribe": "t"}
    with pytest.raises(OptionError, match=message):
        parse({**base, **given}, streaming=True)


@pytest.mark.parametrize("name", ["a/b", "http://a/b/c", "persistent://a//c"])
def test_a_name_that_is_none_is_refused(name: str, shared_server: BrokerProcess) -> None:
    with pytest.raises(SourceError, match="names no topic of Pulsar"):
        rows_read(shared_server.pulsar, name)


@pytest.mark.soak
def test_a_stream_of_spark_goes_on_from_its_checkpoint(
    spark: SparkSession, topic: str, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    reader = spark.readStream.format("penstock").option("subscribe", topic)
    reader = reader.option("penstock.bootstrap.servers", shared_server.pulsar)
    rows = reader.options(startingOffsets="earliest", failOnDataLoss="false")

    def run() -> int:
        writer = rows.load().writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start(str(tmp_path / "table")).awaitTermination()
        return spark.read.parquet(str(tmp_path / "table")).count()

    assert run() == 60
    send(shared_server.pulsar, f"{topic}-partition-0", 60, 75)
    assert run() == 75
