"""A table and what came since as one, through a real Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.jobs.config import (
    Deduplication,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
    WriteMode,
)
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.live.table import live_table
from penstock.pipeline.tables import merging
from penstock.pipeline.tables.interface import TableFormat
from penstock.pipeline.values.options import OnParseError
from spark_topics import create, fill, numbered
from topic_tables import write_all

FORMATS = list(TableFormat)


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def pipeline(server: BrokerProcess, folder: Path, **settings: object) -> PipelineConfig:
    topic = create(server.kafka)
    return PipelineConfig(server.kafka, (topic,), folder, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FORMATS)
def test_history_and_end_are_one_table(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    # To Spark such a path is a pattern.
    config = pipeline(shared_server, tmp_path / "a{b}*[c]", table_format=kind)
    (topic,) = config.topics
    fill(shared_server.kafka, topic, numbered(0, 100))
    write_all(config)
    assert offsets(live_table(spark, config.table)) == list(range(100))
    fill(shared_server.kafka, topic, numbered(100, 130))
    live = live_table(spark, config.table)
    with KafkaClient(shared_server.kafka) as client:
        client.add_partitions(topic, 2)
    write_all(config, 1)
    fill(shared_server.kafka, topic, numbered(130, 135))
    assert offsets(live) == list(range(130))
    source = spark.read.format("penstock").option("subscribe", topic)
    source = source.option("penstock.bootstrap.servers", shared_server.kafka)
    expected = source.load().where("offset < 130")
    found, expected = (each.toArrow().sort_by("offset") for each in (live, expected))
    assert found == expected


def test_history_is_read_by_sparks_own_reader(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    config = pipeline(shared_server, tmp_path / "table")
    fill(shared_server.kafka, config.topics[0], numbered(0, 10))
    write_all(config)
    chosen = live_table(spark, config.table).where("offset > 5").select("offset")
    plan = chosen._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet [offset#" in plan
    assert "PushedFilters: [IsNotNull(offset), GreaterThan(offset,5)]" in plan


@pytest.mark.soak
def test_each_row_is_there_once_while_a_job_writes_and_merges(
    spark: SparkSession,
    shared_server: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 2)
    delta = {"table_format": TableFormat.DELTA, "interval_seconds": 0.1}
    config = pipeline(shared_server, tmp_path / "table", **delta)
    job = Run(config)
    beside = threading.Thread(target=job.run, args=[lambda _: None])
    beside.start()
    try:
        for end in range(10, 70, 10):
            fill(shared_server.kafka, config.topics[0], numbered(end - 10, end))
            assert offsets(live_table(spark, config)) == list(range(end))
    finally:
        job.stop()
        beside.join()


@pytest.mark.parametrize(
    "kind", [TableFormat.DELTA, pytest.param(TableFormat.ICEBERG, marks=pytest.mark.soak)]
)
def test_of_each_key_there_is_the_newest_row(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    by = {"mode": WriteMode.UPSERT, "key": ("key",)}
    config = pipeline(shared_server, tmp_path / "table", table_format=kind, **by)
    (topic,) = config.topics
    fill(shared_server.kafka, topic, [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"a", b"2")])
    assert values(live_table(spark, config)) == {b"a": b"2", b"b": b"1", b"c": b"1"}
    write_all(config)
    assert values(live_table(spark, config)) == {b"a": b"2", b"b": b"1", b"c": b"1"}
    fill(shared_server.kafka, topic, [(b"b", None), (b"c", b"0"), (b"c", b"2"), (b"d", b"1")])
    live = live_table(spark, config)
    assert values(live) == {b"a": b"2", b"c": b"2", b"d": b"1"}
    fill(shared_server.kafka, topic, [(b"a", b"3")])
    assert values(live) == {b"a": b"2", b"c": b"2", b"d": b"1"}
    fill(shared_server.kafka, topic, [(None, b"4")])
    with pytest.raises(Exception, match="a change has no key"):
        values(live_table(spark, config))


def values(frame: DataFrame) -> dict[bytes, bytes]:
    rows = frame.select("key", "value").collect()
    found = {bytes(row.key): bytes(row.value) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.soak
def test_the_end_goes_through_the_pipelines_steps(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    """What the job would write of it, and nothing that only the job may write."""
    config = pipeline(
        shared_server,
        tmp_path / "table",
        table_format=TableFormat.DELTA,
        parsing=Parsing("id INT, at TIMESTAMP", OnParseError.DEAD_LETTER, tmp_path / "dead"),
        expectations=(
            Expectation("counted", "id > 1000"),
            Expectation("small", "id < 100", Otherwise.DROP),
            Expectation("positive", "id >= 0", Otherwise.QUARANTINE),
            Expectation("no end", "id <> 42", Otherwise.FAIL),
        ),
        partition_by=("day(at)", "hour(at)"),
    )
    (topic,) = config.topics
    at = b'"at": "2026-11-22T23:30:00Z"'
    records = [b'{"id": %d, %s}' % (number, at) for number in (1, 2, 500, -1)]
    fill(shared_server.kafka, topic, [(None, each) for each in (*records, b"{", b"{}")])
    live = live_table(spark, config)
    before = sorted(map(tuple, live.where("id > 0").collect()))
    assert [row[0] for row in before] == [1, 2]
    Run(config).run(lambda _: None)
    assert {each.name for each in (tmp_path / "dead").iterdir()} != set()
    letters = sorted((tmp_path / "dead").iterdir())
    live = live_table(spark, config).select(live.columns)
    assert sorted(map(tuple, live.collect())) == before
    fill(shared_server.kafka, topic, [(None, b"{"), (None, b'{"id": 3}')])
    assert {row.id for row in live_table(spark, config).collect()} == {1, 2, 3}
    assert sorted((tmp_path / "dead").iterdir()) == letters
    fill(shared_server.kafka, topic, [(None, b'{"id": 42}')])
    with pytest.raises(Exception, match="expectation 'no end'"):
        live_table(spark, config).collect()


def without_duplicates(config: PipelineConfig) -> PipelineConfig:
    return replace(config, deduplication=Deduplication(("offset",), "timestamp", 60))


def a_folder_of_nobody(config: PipelineConfig) -> Path:
    return config.table / "none"


def a_file_that_is_none(config: PipelineConfig) -> Path:
    return config.table / "none.toml"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (without_duplicates, "only its job knows which rows were there before"),
        (a_folder_of_nobody, "does not say which pipeline writes it"),
        (a_file_that_is_none, "none.toml can't be read"),
    ],
)
def test_what_can_not_be_is_said_before_any_row(
    tmp_path: Path,
    place: Callable[[PipelineConfig], Path | PipelineConfig],
    message: str,
) -> None:
    config = PipelineConfig("127.0.0.1:1", ("a",), tmp_path)
    no_spark: SparkSession = None  # type: ignore[assignment]
    with pytest.raises(LiveTableError, match=message):
        live_table(no_spark, place(config))
