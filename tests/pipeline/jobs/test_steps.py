"""Expectations and deduplication by a real Spark, into tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.jobs.checks import CheckError, look_at_steps
from penstock.pipeline.jobs.config import (
    Deduplication,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
)
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.jobs.state import JobState, Phase
from penstock.pipeline.tables.interface import TableError, state_folder
from penstock.pipeline.values.options import OnParseError
from spark_topics import create, fill, numbered


def column(table: Path, name: str) -> list[Any]:
    files = sorted(table.glob("**/*.parquet"))
    return sorted(value for file in files for value in pq.read_table(file)[name].to_pylist())


def test_values_are_parsed_rows_held_against_expectations_and_doubles_dropped(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka, 2)
    orders = [(None, b'{"id": %d, "at": "2026-01-01T00:00:00Z"}' % each) for each in range(10)]
    orders += [(None, b'{"at": "2026-01-01T00:00:00Z"}')] * 2
    for partition in (0, 1):
        fill(shared_server.kafka, topic, [*orders, (None, b"no JSON")], partition=partition)
    table = tmp_path / "table"
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        table,
        parsing=Parsing("id BIGINT, at TIMESTAMP", OnParseError.DEAD_LETTER, tmp_path / "rejected"),
        expectations=(
            Expectation("not three", "id IS NULL OR id != 3", Otherwise.DROP),
            Expectation("below eight", "id IS NULL OR id < 8", Otherwise.QUARANTINE),
            Expectation("of partition 0", "_partition = 0"),
        ),
        deduplication=Deduplication(("id",), "at", 600.0),
    )
    progress = Run(config).run(lambda _: None)
    ids = pa.concat_tables(pq.read_table(file, columns=["id"]) for file in table.glob("*.parquet"))
    assert sorted(ids["id"].drop_null().to_pylist()) == [0, 1, 2, 4, 5, 6, 7]
    assert ids["id"].null_count == 4, "two rows without an id are no doubles"
    assert column(tmp_path / "rejected", "value") == [b"no JSON", b"no JSON"]
    quarantine = tmp_path / "table-quarantine"
    assert column(quarantine, "id") == [8, 8, 9, 9]
    assert set(column(quarantine, "_expectation")) == {"below eight"}
    assert progress.rows == 11
    assert progress.unmet["not three"] == 2
    assert progress.unmet["below eight"] == 4
    status = JobState(state_folder(table)).read()
    assert status is not None
    assert (status.phase, status.rows, status.unmet) == (Phase.ENDED, 11, progress.unmet)
    lines = (state_folder(table) / "batches.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["rows"] for line in lines) == 11


def test_an_expectation_that_ends_the_run_writes_nothing_of_its_batch(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    table = tmp_path / "table"
    config = PipelineConfig(shared_server.kafka, (topic,), table)
    failing = replace(config, expectations=(Expectation("small", "offset < 7", Otherwise.FAIL),))
    with pytest.raises(PipelineError, match=r"expectation 'small' \(offset < 7\) is not met"):
        Run(failing).run(lambda _: None)
    assert not list(table.glob("*.parquet"))
    status = JobState(state_folder(table)).read()
    assert status is not None
    assert status.phase is Phase.FAILED
    assert "is not met" in (status.error or "")
    # The checkpoint is that of the table, whichever steps a later run has.
    assert Run(config).run(lambda _: None).rows == 10


@pytest.mark.parametrize(
    ("that", "error"),
    [
        ("offset", "expectation 'one' must be a boolean, and is a bigint|is a long"),
        ("nosuch > 1", r"expectation 'one': .*nosuch"),
        ("offset >", r"expectation 'one': .*PARSE_SYNTAX_ERROR"),
    ],
)
def test_a_condition_that_is_none_is_named(
    spark: SparkSession,
    shared_server: BrokerProcess,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    that: str,
    error: str,
) -> None:
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addHandler(caplog.handler)
    topic = create(shared_server.kafka)
    config = PipelineConfig(
        shared_server.kafka, (topic,), tmp_path / "t", expectations=(Expectation("one", that),)
    )
    with pytest.raises(CheckError, match=error):
        look_at_steps(config)
    with pytest.raises(PipelineError, match=error):
        Run(config).run(lambda _: None)
    assert caplog.text == "", "PySpark prints a trace of what the error says"


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_which_rows_are_doubles_is_not_changed_later(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    plain = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "plain")
    one = Deduplication(("offset",), "timestamp", 60.0)
    once = replace(plain, table=tmp_path / "once", deduplication=one)
    both = replace(one, by=("offset", "partition"))
    for batch, (before, after) in enumerate(((plain, one), (once, both))):
        fill(shared_server.kafka, topic, numbered(2 * batch, 2 * batch + 1))
        Run(before).run(lambda _: None)
        fill(shared_server.kafka, topic, numbered(2 * batch + 1, 2 * batch + 2))
        with pytest.raises(PipelineError, match=r"\[deduplicate\] has to stay as it was"):
            Run(replace(before, deduplication=after)).run(lambda _: None)
        assert column(before.table, "offset") == list(range(2 * batch + 1))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_checkpoint_that_is_older_than_the_table_is_refused(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        tmp_path / "t",
        expectations=(Expectation("e", "offset >= 0"),),
    )
    checkpoint = tmp_path / "t" / "_checkpoint"
    for batch in range(3):
        fill(shared_server.kafka, topic, numbered(batch, batch + 1))
        if batch < 2:
            Run(config).run(lambda _: None)
            shutil.copytree(checkpoint, tmp_path / f"after {batch}")
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "after 0", checkpoint)
    with pytest.raises(TableError, match="older than the table"):
        Run(config).run(lambda _: None)
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "after 1", checkpoint)
    Run(config).run(lambda _: None)
    assert column(tmp_path / "t", "offset") == [0, 1, 2]


def test_a_duplicate_by_no_column_is_named(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    doubles = Deduplication(("nosuch",), "timestamp", 60.0)
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "t", deduplication=doubles)
    with pytest.raises(PipelineError, match=r"deduplicate\.by: .*nosuch"):
        Run(config).run(lambda _: None)


def test_a_registry_that_is_down_is_named_before_a_run(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    parsing = Parsing("http://127.0.0.1:1")
    topic = create(shared_server.kafka)
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "t", parsing=parsing)
    with pytest.raises(
        CheckError, match=r"^schema: the registry at http://127\.0\.0\.1:1 does not"
    ):
        look_at_steps(config)
