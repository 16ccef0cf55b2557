"""Goal: Spark writes topics, batch and stream, and every reader sees each row once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_process import BrokerProcess
from patience import wait_until
from spark_topics import committed, create, fill, numbered

SERVERS = "kafka.bootstrap.servers"


def write(frame: DataFrame, server: BrokerProcess, **options: str) -> None:
    frame.write.format("penstock").mode("append").options(
        **{SERVERS: server.kafka, **options}
    ).save()


def values(server: BrokerProcess, topic: str, partitions: int = 1) -> list[bytes]:
    found = [
        each.value or b""
        for number in range(partitions)
        for each in committed(server.kafka, topic, number)
    ]
    return sorted(found)


def test_a_table_is_written_as_a_whole(spark: SparkSession, shared_server: BrokerProcess) -> None:
    topic = create(shared_server.kafka, 3)
    frame = spark.range(5000).selectExpr(
        "CAST(id AS STRING) AS key",
        "CONCAT('v', id) AS value",
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers",
        "TIMESTAMP '2026-01-02 03:04:05.678' AS timestamp",
    )
    write(frame, shared_server, topic=topic)
    assert values(shared_server, topic, 3) == sorted(b"v%d" % number for number in range(5000))
    back = spark.read.format("penstock").option(SERVERS, shared_server.kafka)
    back = back.option("subscribe", topic).option("includeHeaders", "true").load()
    same = back.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "headers", "timestamp")
    assert same.exceptAll(frame).count() == frame.exceptAll(same).count() == 0


def test_a_stream_goes_from_topic_to_topic(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source, target = create(shared_server.kafka, 2), create(shared_server.kafka, 2)

    def run() -> None:
        rows = spark.readStream.format("penstock").option(SERVERS, shared_server.kafka)
        rows = rows.option("subscribe", source).option("startingOffsets", "earliest")
        query = (
            rows.option("maxOffsetsPerTrigger", "400")
            .load()
            .select("key", "value", "timestamp")
            .writeStream.format("penstock")
            .option(SERVERS, shared_server.kafka)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for partition in (0, 1):
        fill(shared_server.kafka, source, numbered(0, 400), partition=partition)
    run()
    commits = sorted((tmp_path / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    commits[-1].unlink()  # as when Spark ends between the sink's decision and its own note of it
    (tmp_path / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    run()
    fill(shared_server.kafka, source, numbered(400, 450))
    run()
    expected = [b"v%d" % number for number in range(400)] * 2
    expected += [b"v%d" % number for number in range(400, 450)]
    assert values(shared_server, target, 2) == sorted(expected)


def test_a_batch_that_names_itself_is_written_once(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    for version in ("4", "4", "5"):
        write(frame, shared_server, topic=topic, txnAppId=topic, txnVersion=version)
    assert len(values(shared_server, topic)) == 20
    with pytest.raises(Exception, match=f"batch 5 of app-{topic} was written to another topic"):
        write(
            frame, shared_server, topic=create(shared_server.kafka), txnAppId=topic, txnVersion="5"
        )


def test_a_write_that_fails_shows_nothing(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka, 2)
    frame = spark.range(0, 1000, 1, 4).selectExpr(
        "IF(id = 999, raise_error('upstream'), CAST(id AS STRING)) AS value"
    )
    with pytest.raises(Exception, match="upstream"):
        write(frame, shared_server, topic=topic, **{"kafka.transaction.timeout.ms": "3000"})
    good = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    write(good, shared_server, topic=topic)
    # A task that Spark ends late may begin behind the driver's abort: its transaction times out.
    wait_until(lambda: values(shared_server, topic, 2) == [b"0", b"1", b"2"])


def test_what_can_not_be_written_is_refused_before_any_task(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    frame = spark.range(1).selectExpr("id AS value")
    with pytest.raises(Exception, match="column value is bigint, and must be string or binary"):
        write(frame, shared_server, topic="t")
    writer = frame.write.format("penstock").option(SERVERS, shared_server.kafka)
    with pytest.raises(Exception, match="can't be overwritten: use mode"):
        writer.option("topic", "t").mode("overwrite").save()
