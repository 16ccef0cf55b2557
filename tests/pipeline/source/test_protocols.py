"""What Pulsar's and Iggy's clients wrote, as rows of Spark."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pulsar
from apache_iggy import HeaderKey, HeaderValue, IggyClient, Partitioning, SendMessage
from pyspark.sql import DataFrame, Row, SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_task
from spark_topics import create, fill


def write_with_pulsar(address: str, topic: str) -> None:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    client = pulsar.Client(address, logger=logger)
    for compression in (pulsar.CompressionType.NONE, pulsar.CompressionType.LZ4):
        producer = client.create_producer(
            topic, batching_enabled=True, compression_type=compression, batching_max_messages=10
        )
        for number in range(25):
            producer.send_async(
                b"pulsar %d" % number,
                lambda *_: None,
                partition_key=f"key {number}",
                properties={"from": "pulsar", "number": str(number)},
            )
        producer.flush()
    single = client.create_producer(topic, batching_enabled=False)
    single.send(b"alone")
    client.close()


async def write_with_iggy(address: str, topic: str) -> None:
    client = IggyClient(address)
    await client.connect()
    await client.login_user("iggy", "iggy")
    messages = [
        SendMessage(
            b"iggy %d" % number,
            {
                HeaderKey.String("penstock.key"): HeaderValue.Raw(b"key %d" % number),
                HeaderKey.String("number"): HeaderValue.Int64(number),
                HeaderKey.String("from"): HeaderValue.String("iggy"),
            },
        )
        for number in range(20)
    ]
    await client.send_messages("default", topic, Partitioning.partition_id(0), messages)
    plain = [SendMessage(b"no key")]
    await client.send_messages("default", topic, Partitioning.partition_id(0), plain)


def rows_of(frame: DataFrame) -> list[Row]:
    return frame.orderBy("offset").collect()


def test_one_topic_of_three_protocols_reads_the_same_both_ways(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, [(b"k", b"kafka"), (None, None)], headers=[("from", b"kafka")])
    write_with_pulsar(shared_server.pulsar, topic + "-partition-0")
    asyncio.run(write_with_iggy(shared_server.iggy, topic))
    fill(shared_server.kafka, topic, [(b"k", b"last")], **{"compression.type": "zstd"})

    source = spark.read.format("penstock").option("penstock.bootstrap.servers", shared_server.kafka)
    source = source.option("subscribe", topic)
    log, wire = (rows_of(source.option("readMode", mode).load()) for mode in ("log", "wire"))
    assert log == wire
    pulsars = [(b"key %d" % number, b"pulsar %d" % number) for number in range(25)]
    assert [(row.key, row.value) for row in log] == [
        (b"k", b"kafka"),
        (None, None),
        *pulsars,
        *pulsars,
        (None, b"alone"),
        *((b"key %d" % number, b"iggy %d" % number) for number in range(20)),
        (None, b"no key"),
        (b"k", b"last"),
    ]
    assert [row.offset for row in log] == list(range(len(log)))

    source = source.option("includeHeaders", "true")
    log, wire = (rows_of(source.option("readMode", mode).load()) for mode in ("log", "wire"))
    assert log == wire
    senders = [
        next((bytes(each.value) for each in row.headers or [] if each.key == "from"), None)
        for row in log
    ]
    assert senders == 2 * [b"kafka"] + 50 * [b"pulsar"] + [None] + 20 * [b"iggy"] + 2 * [None]


def test_iggys_microseconds_are_kept_whichever_way_they_are_read(
    shared_server: BrokerProcess,
) -> None:
    topic = create(shared_server.kafka)
    for _ in range(3):  # Each send has a time of its own.
        asyncio.run(write_with_iggy(shared_server.iggy, topic))
    found = {mode: times(shared_server.kafka, topic, mode) for mode in ("log", "wire")}
    assert found["log"] == found["wire"]
    assert any(time.microsecond % 1000 for time in found["log"])


def times(address: str, topic: str, mode: str) -> list[datetime]:
    """Read the times of a topic's rows as tasks do, without a Spark."""
    given = {"penstock.bootstrap.servers": address, "subscribe": topic, "readMode": mode}
    options = parse({**given, "columns": "timestamp"}, streaming=False)
    with KafkaCluster(options) as cluster:
        planner = Planner(options, cluster)
        tasks = planner.tasks(*planner.batch())
    batches = [batch for task in tasks for batch in read_task(task, options)]
    return [time for batch in batches for time in batch.column("timestamp").to_pylist()]
