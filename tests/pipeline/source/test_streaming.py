from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.source.offsets import from_json, to_json
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.readers import StreamReader
from spark_topics import create, fill, numbered


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for query in spark.streams.active:
        query.stop()


def stream(spark: SparkSession, address: str, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("penstock").option("penstock.bootstrap.servers", address)
    return reader.options(**{"subscribe": topic, "startingOffsets": "earliest", **options}).load()


def run(frame: DataFrame, folder: Path) -> StreamingQuery:
    """Write the stream with Spark's own Parquet sink until it has caught up."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "table"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def values(spark: SparkSession, folder: Path) -> list[bytes]:
    rows = spark.read.parquet(str(folder / "table")).orderBy("partition", "offset").collect()
    return [bytes(row.value) for row in rows]


def expected(first: int, last: int) -> list[bytes | None]:
    return [value for _, value in numbered(first, last)]


def test_a_stream_takes_up_where_it_ended(
    spark: SparkSession, shared_server: BrokerProcess, folder: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 1000))
    run(stream(spark, shared_server.kafka, topic), folder)
    assert values(spark, folder) == expected(0, 1000)
    fill(shared_server.kafka, topic, numbered(1000, 1500))
    run(stream(spark, shared_server.kafka, topic), folder)
    assert values(spark, folder) == expected(0, 1500)


def test_batches_are_as_large_as_asked(
    spark: SparkSession, shared_server: BrokerProcess, folder: Path
) -> None:
    topic = create(shared_server.kafka, 2)
    for partition in (0, 1):
        fill(shared_server.kafka, topic, numbered(0, 500), partition=partition)
    limited = stream(spark, shared_server.kafka, topic, maxOffsetsPerTrigger="400")
    progress = run(limited, folder).recentProgress
    assert [batch["numInputRows"] for batch in progress] == [400, 400, 200]
    ends = [batch["sources"][0]["endOffset"] for batch in progress]
    assert to_json(from_json(json.loads(ends[0]))) == {topic: {"0": 200, "1": 200}}
    assert ends[-1] == progress[0]["sources"][0]["latestOffset"]
    assert values(spark, folder) == 2 * expected(0, 500)


def test_a_topic_that_is_made_anew_is_noticed(
    spark: SparkSession, shared_server: BrokerProcess, folder: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 20))
    run(stream(spark, shared_server.kafka, topic), folder)
    with KafkaClient(shared_server.kafka) as client:
        client.delete_topic(topic)
        client.create_topic(topic, 1)
    fill(shared_server.kafka, topic, numbered(0, 50))  # more than there was
    with pytest.raises(Exception, match=f"{topic}-0 was read up to offset 20 and is gone"):
        run(stream(spark, shared_server.kafka, topic), folder)


def test_given_offsets_begin_a_stream(
    spark: SparkSession, shared_server: BrokerProcess, folder: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 100))
    starting = json.dumps({topic: {"0": 90}})
    run(stream(spark, shared_server.kafka, topic, startingOffsets=starting), folder)
    assert values(spark, folder) == expected(90, 100)


def test_a_stream_from_the_latest_offset_settles_where_it_begins(
    spark: SparkSession, shared_server: BrokerProcess, folder: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    options = {"penstock.bootstrap.servers": shared_server.kafka, "subscribe": topic}
    reader = StreamReader(parse(options, streaming=True))
    start = reader.initialOffset()
    fill(shared_server.kafka, topic, numbered(10, 15))
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert to_json(from_json(start)) == {topic: {"0": 10}}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert to_json(from_json(end)) == {topic: {"0": 15}}
    reader.stop()

    run(stream(spark, shared_server.kafka, topic, startingOffsets="latest"), folder)
    fill(shared_server.kafka, topic, numbered(15, 18))
    # As after a crash in the first batch: it is done again, from another latest offset.
    (folder / "checkpoint" / "commits" / "0").unlink()
    run(stream(spark, shared_server.kafka, topic, startingOffsets="latest"), folder)
    assert values(spark, folder) == expected(15, 18)
