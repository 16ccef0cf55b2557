"""A view of a live table: what it shows as its topics and its table go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.jobs.config import Parsing, PipelineConfig, WriteMode
from penstock.pipeline.live.view import register_view
from penstock.pipeline.tables.interface import TableFormat
from spark_topics import create, fill, numbered
from topic_tables import write_all


@pytest.fixture
def config(shared_server: BrokerProcess, tmp_path: Path) -> PipelineConfig:
    """A pipeline whose table holds all of its topic, 20 messages."""
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, numbered(0, 20))
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "orders-table")
    write_all(config)
    return config


def offsets(spark: SparkSession, view: str) -> list[tuple[int, int]]:
    rows = spark.sql(f"SELECT partition, offset FROM {view}").collect()
    return sorted(map(tuple, rows))


def test_each_query_sees_what_came_since_the_last(
    spark: SparkSession, config: PipelineConfig
) -> None:
    (topic,) = config.topics
    view = register_view(spark, config.table)
    assert view == "orders_table"
    expected = [(0, number) for number in range(20)]
    assert offsets(spark, view) == expected
    fill(config.servers, topic, numbered(20, 25))
    expected += [(0, number) for number in range(20, 25)]
    assert offsets(spark, view) == expected
    write_all(config, 1)
    fill(config.servers, topic, numbered(0, 3), partition=1)
    with KafkaClient(config.servers) as client:
        client.add_partitions(topic, 3)
    fill(config.servers, topic, numbered(0, 2), partition=2)
    expected += [*((1, number) for number in range(3)), (2, 0), (2, 1)]
    assert offsets(spark, view) == expected
    assert register_view(spark, config.table, "again") == "again"
    assert offsets(spark, "again") == expected
    plan = spark.table("again").where("offset > 5")._jdf.queryExecution().executedPlan()
    assert "PushedFilters: [IsNotNull(offset), GreaterThan(offset,5)]" in plan.toString()
    assert re.search(r"\*\(1\) Union", plan.toString()), "one compiled step has all of it"


def test_messages_that_are_gone_are_said(spark: SparkSession, config: PipelineConfig) -> None:
    view = register_view(spark, config)
    fill(config.servers, config.topics[0], numbered(20, 30))
    with KafkaClient(config.servers) as client:
        client.delete_records(config.topics[0], {0: 25})
    with pytest.raises(Exception, match=r"register the view again: .*from offset 20 up to 30"):
        offsets(spark, view)


def test_of_a_table_without_a_batch_all_is_the_end(
    spark: SparkSession, config: PipelineConfig, tmp_path: Path
) -> None:
    parsed = PipelineConfig(
        config.servers, (create(config.servers),), tmp_path / "new", parsing=Parsing("id INT")
    )
    view = register_view(spark, parsed)
    fill(config.servers, parsed.topics[0], [(None, b'{"id": 7}')])
    assert [row.id for row in spark.table(view).collect()] == [7]


def test_of_each_key_there_is_the_newest_row(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        tmp_path / "table",
        table_format=TableFormat.DELTA,
        mode=WriteMode.UPSERT,
        key=("key",),
    )

    def values() -> list[tuple[bytes, bytes]]:
        rows = spark.table("newest").select("key", "value").collect()
        return sorted((bytes(row.key), bytes(row.value)) for row in rows)

    register_view(spark, config, "newest")
    fill(shared_server.kafka, topic, [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"c", None)])
    assert values() == [(b"a", b"1"), (b"b", b"1")]
    write_all(config)
    register_view(spark, config, "newest")
    assert values() == [(b"a", b"1"), (b"b", b"1")]
    fill(shared_server.kafka, topic, [(b"b", None), (b"c", b"2"), (b"a", b"2")])
    assert values() == [(b"a", b"2"), (b"c", b"2")]
    fill(shared_server.kafka, topic, [(b"b", b"3")])
    assert values() == [(b"a", b"2"), (b"b", b"3"), (b"c", b"2")]
