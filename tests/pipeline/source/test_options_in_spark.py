"""What only Spark itself can show of options: columns, conditions, groups, errors of a stream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all of PySpark's own pages

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from spark_topics import create, fill, numbered

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def test_columns_and_conditions_narrow_a_read(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka, 2)
    for partition in (0, 1):
        fill(shared_server.kafka, topic, numbered(0, 300), partition=partition)
    source = spark.read.format("penstock").option("kafka.bootstrap.servers", shared_server.kafka)
    source = source.option("subscribePattern", re.escape(topic))
    assert source.option("columns", "partition").load().columns == ["partition"]
    assert source.option("columns", "partition").load().count() == 600
    narrow = source.option("columns", "partition,offset").option("filterPushdown", "true")
    with pytest.raises(Exception, match=PUSHDOWN):
        narrow.load().where("partition = 1").count()
    spark.conf.set(PUSHDOWN, "true")
    try:
        # Two partitions, of which one is left: so is one task.
        found = narrow.load().where("partition = 1 AND offset >= 250")
        assert found.rdd.getNumPartitions() == 1
        assert [row.offset for row in found.orderBy("offset").collect()] == list(range(250, 300))
    finally:
        spark.conf.unset(PUSHDOWN)


def test_a_stream_commits_its_progress_as_a_group(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 100))
    stream = spark.readStream.format("penstock").options(
        **{
            "kafka.bootstrap.servers": shared_server.kafka,
            "kafka.group.id": f"group-of-{topic}",
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "60",
        }
    )
    writer = stream.load().writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.start().awaitTermination()
    with KafkaClient(shared_server.kafka) as client:
        assert client.committed_offsets(f"group-of-{topic}") == {(topic, 0): 100}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a", "startingOffset": "latest"}, "did you mean startingOffsets"),
        ({"subscribe": "a", "kafka.bootstrap.servers": "127.0.0.1:1"}, "does not answer"),
    ],
)
def test_a_stream_that_can_not_be_says_why(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    base = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    frame = spark.readStream.format("penstock").options(**{**base, **options}).load()
    query = frame.select(F.col("value")).writeStream.format("noop")
    with pytest.raises(Exception, match=message) as raised:
        query.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    assert "UnboundLocalError" not in str(raised.value)
