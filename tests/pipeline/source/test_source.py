from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_process import BrokerProcess
from spark_topics import Record, create, fill, numbered

MODES = ["log", "wire"]
ODD: list[Record] = [
    (None, b"no key"),
    (b"tombstone", None),
    (b"", b""),
    (b"\xff\x00", b"\xfe" * 300),
]


def read(spark: SparkSession, address: str, **options: str) -> DataFrame:
    reader = spark.read.format("penstock").option("penstock.bootstrap.servers", address)
    return reader.options(**options).load()


def pairs(frame: DataFrame) -> list[Record]:
    rows = frame.orderBy("topic", "partition", "offset").select("key", "value").collect()
    return [(as_bytes(row.key), as_bytes(row.value)) for row in rows]


def as_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def test_the_columns_are_those_of_sparks_kafka_source(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    frame = read(spark, shared_server.kafka, subscribe=topic)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    with_headers = read(spark, shared_server.kafka, subscribe=topic, includeHeaders="true")
    assert with_headers.schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    assert frame.count() == 0


@pytest.mark.parametrize("mode", MODES)
def test_every_row_comes_back(spark: SparkSession, shared_server: BrokerProcess, mode: str) -> None:
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, [*ODD, *numbered(0, 1000)])
    fill(shared_server.kafka, topic, numbered(0, 500), partition=1, **{"compression.type": "lz4"})
    frame = read(spark, shared_server.kafka, subscribe=topic, readMode=mode)
    assert pairs(frame) == [*ODD, *numbered(0, 1000), *numbered(0, 500)]
    rows = frame.where("partition = 0").orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(1004))
    assert {(row.topic, row.timestampType) for row in rows} == {(topic, 0)}
    newest = datetime.now(UTC).replace(tzinfo=None)
    assert all(newest - timedelta(minutes=5) < row.timestamp <= newest for row in rows)


@pytest.mark.parametrize("mode", MODES)
def test_headers_come_in_order_with_duplicates_and_nulls(
    spark: SparkSession, shared_server: BrokerProcess, mode: str
) -> None:
    topic = create(shared_server.kafka)
    headers = [("a", b"1"), ("b", None), ("a", b"")]
    fill(shared_server.kafka, topic, [(b"k", b"with")], headers=headers)
    fill(shared_server.kafka, topic, [(b"k", b"without")])
    frame = read(spark, shared_server.kafka, subscribe=topic, includeHeaders="true", readMode=mode)
    first, second = frame.orderBy("offset").collect()
    assert [(header.key, as_bytes(header.value)) for header in first.headers] == headers
    assert not second.headers


def test_positions_cut_batches(spark: SparkSession, shared_server: BrokerProcess) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 100))
    for mode in MODES:
        frame = read(
            spark,
            shared_server.kafka,
            assign=json.dumps({topic: [0]}),
            startingOffsets=json.dumps({topic: {"0": 17}}),
            endingOffsets=json.dumps({topic: {"0": 42}}),
            readMode=mode,
        )
        assert pairs(frame) == numbered(17, 42)


def test_one_partition_is_read_by_many_tasks(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 50_000))
    for mode in MODES:
        frame = read(spark, shared_server.kafka, subscribe=topic, minPartitions="5", readMode=mode)
        assert frame.rdd.getNumPartitions() == 5
        assert pairs(frame) == numbered(0, 50_000)


def test_a_segment_that_is_gone_is_read_over_the_wire(
    spark: SparkSession, server: BrokerProcess
) -> None:
    topic = create(server.kafka)
    fill(server.kafka, topic, numbered(0, 100))
    # The broker holds its files open, so it goes on reading what a task can open no more; and as
    # there is something in each place, it misses none.
    nothing_to_read = server.folder / "nothing to read"
    for segment in server.data_folder.glob("topics/*/0/*"):
        nothing_to_read.symlink_to(server.folder)
        nothing_to_read.replace(segment)
    assert pairs(read(spark, server.kafka, subscribe=topic)) == numbered(0, 100)
    with pytest.raises(Exception, match="readMode is log"):
        read(spark, server.kafka, subscribe=topic, readMode="log").collect()


def test_the_data_folder_of_another_broker_is_not_read(
    spark: SparkSession, server: BrokerProcess
) -> None:
    topic = create(server.kafka)
    fill(server.kafka, topic, numbered(0, 10))
    (server.data_folder / "cluster-id").write_text("that-of-another-broker")
    assert pairs(read(spark, server.kafka, subscribe=topic)) == numbered(0, 10)
    with pytest.raises(Exception, match="can't be read from here"):
        read(spark, server.kafka, subscribe=topic, readMode="log").collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nosuch"}, "no topic named nosuch"),
        ({"subscribe": "a", "startingOffset": "latest"}, "did you mean startingOffsets"),
        ({}, "exactly one of the options subscribe, subscribePattern and assign"),
    ],
)
def test_a_read_that_can_not_be_says_why(
    spark: SparkSession, shared_server: BrokerProcess, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        read(spark, shared_server.kafka, **options).collect()


def test_no_broker_says_so(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"the broker at 127\.0\.0\.1:1 does not answer"):
        read(spark, "127.0.0.1:1", subscribe="a").collect()


def test_offsets_that_are_gone(spark: SparkSession, shared_server: BrokerProcess) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    ending = {"endingOffsets": json.dumps({topic: {"0": 20}})}
    with pytest.raises(Exception, match="failOnDataLoss"):
        read(spark, shared_server.kafka, subscribe=topic, **ending).collect()
    frame = read(spark, shared_server.kafka, subscribe=topic, failOnDataLoss="false", **ending)
    assert pairs(frame) == numbered(0, 10)
