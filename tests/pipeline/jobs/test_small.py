"""Runs that read little: without Spark, and taken up by runs with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.jobs import small
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.checks import Found
from penstock.pipeline.jobs.config import Expectation, PipelineConfig
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.jobs.recording import recorded
from penstock.pipeline.jobs.settings import source_options, table_config
from penstock.pipeline.jobs.small import is_small, may_go_without_spark
from penstock.pipeline.jobs.state import JobState, Phase
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.readers import TaskPartition
from penstock.pipeline.tables.interface import (
    StagedFile,
    TableConfig,
    TableFormat,
    covered,
    state_folder,
)
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.parquet import ParquetTable
from penstock.pipeline.tables.staged_files import TableFilesReader, stage_task
from spark_topics import create, fill, numbered
from table_readers import READERS, offsets_seen


def config_of(server: BrokerProcess, topic: str, table: Path, **settings: Any) -> PipelineConfig:
    return PipelineConfig(server.kafka, (topic,), table, **settings)


def run(config: PipelineConfig) -> int:
    return Run(config).run(lambda _: None).rows


def holds(config: PipelineConfig, rows: int) -> None:
    for reader in READERS[config.table_format]:
        table = TableConfig(str(config.table), config.table_format)
        assert offsets_seen(reader, table) == list(range(rows))


@pytest.mark.parametrize("kind", list(TableFormat))
@pytest.mark.usefixtures("no_spark")
def test_a_small_table_is_brought_up_to_date(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 100))
    settings = {"table_format": kind, "batch_rows": 60}
    config = config_of(shared_server, topic, tmp_path / "table", **settings)
    lines: list[Any] = []
    progress = Run(config, lines.append).run(lambda _: None)
    assert (progress.rows, progress.batches, progress.behind) == (100, 2, 0)
    assert [(line["batch"], line["rows"]) for line in lines] == [(0, 60), (1, 40)]
    assert run(config) == 0
    fill(shared_server.kafka, topic, numbered(100, 130))
    assert run(config) == 30
    holds(config, 130)
    status = JobState(state_folder(config.table)).read()
    assert status is not None
    assert (status.phase, status.rows) == (Phase.ENDED, 30)
    assert recorded(config.table) == config


def test_runs_with_spark_and_without_it_go_on_from_each_other(
    spark: SparkSession,
    shared_server: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = create(shared_server.kafka)
    config = config_of(shared_server, topic, tmp_path / "table")
    rows = 0
    for without_spark in (True, False, True):
        monkeypatch.setattr(small, "is_open", lambda without=without_spark: not without)
        fill(shared_server.kafka, topic, numbered(rows, rows + 50))
        assert run(config) == 50
        rows += 50
    assert (tmp_path / "table" / "_checkpoint" / "offsets" / ".1.crc").exists()
    holds(config, 150)


class CutError(Exception):
    """A run ends in the middle."""


def cut(*_: object) -> None:
    raise CutError


CUTS: dict[str, tuple[type, str]] = {
    "a batch is planned": (TableFilesReader, "partitions"),
    "its rows are staged": (ParquetTable, "commit"),
    "it is part of the table": (Checkpoint, "finish"),
}


@pytest.mark.parametrize("after", CUTS)
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.usefixtures("no_spark")
def test_a_run_that_is_cut_off_neither_loses_nor_doubles_a_row(
    shared_server: BrokerProcess, tmp_path: Path, after: str, batch: int
) -> None:
    topic = create(shared_server.kafka)
    config = config_of(shared_server, topic, tmp_path / "table")
    fill(shared_server.kafka, topic, numbered(0, 10))
    if batch:
        run(config)
        fill(shared_server.kafka, topic, numbered(10, 20))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(*CUTS[after], cut)
        with pytest.raises(CutError):
            run(config)
    fill(shared_server.kafka, topic, numbered(10 * (batch + 1), 10 * (batch + 2)))
    assert run(config) == 20
    holds(config, 10 * (batch + 2))


@pytest.mark.usefixtures("no_spark")
def test_tasks_of_a_batch_are_done_at_once(
    shared_server: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, numbered(0, 10))
    fill(shared_server.kafka, topic, numbered(0, 10), partition=1)
    both, stage = threading.Barrier(2), small.stage_task

    def met(*args: Any) -> Iterator[StagedFile]:
        both.wait(60)
        return stage(*args)

    monkeypatch.setattr(small, "stage_task", met)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert run(config_of(shared_server, topic, tmp_path / "table")) == 20


def of_many_partitions(server: BrokerProcess, partitions: int) -> str:
    topic = create(server.kafka, partitions)
    for partition in range(partitions):
        fill(server.kafka, topic, numbered(0, 3), partition=partition)
    return topic


@pytest.mark.parametrize("kind", list(TableFormat))
@pytest.mark.usefixtures("no_spark")
def test_small_partitions_share_files(
    shared_server: BrokerProcess,
    tmp_path: Path,
    kind: TableFormat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    topic = of_many_partitions(shared_server, 20)
    config = config_of(shared_server, topic, tmp_path / "table", table_format=kind)
    assert run(config) == 60
    fill(shared_server.kafka, topic, numbered(3, 5), partition=7)
    assert run(config) == 2
    snapshot = open_table(table_config(config)).snapshot()
    assert snapshot is not None
    assert len(snapshot.files) < 10
    table = TableConfig(str(config.table), kind)
    for reader in READERS[kind]:
        assert offsets_seen(reader, table) == sorted([*[0, 1, 2] * 20, 3, 4])


@pytest.mark.usefixtures("no_spark")
def test_a_table_by_partition_has_a_file_for_each(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = of_many_partitions(shared_server, 6)
    config = config_of(shared_server, topic, tmp_path / "table", partition_by=("partition",))
    assert run(config) == 18
    folders = sorted(path.parent.name for path in config.table.glob("*/*.parquet"))
    assert folders == [f"partition={partition}" for partition in range(6)]


def test_what_a_batch_covers_is_known_however_its_partitions_are_gathered(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = of_many_partitions(shared_server, 6)
    config = config_of(shared_server, topic, tmp_path / "table")
    found = []
    for given in ({}, {"minPartitions": "6"}):
        options = parse(source_options(config) | given, streaming=True)
        reader = TableFilesReader(options, table_config(config))
        reader.prepareForTriggerAvailableNow()
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
        files = [file for part in parts for file in stage_task(part, options, "query", 0)]
        reader.stop()
        assert sum(file.rows for file in files) == 18
        found.append((covered(files), sum(1 for file in files if file.staged)))
    (gathered, few), (alone, many) = found
    assert gathered == alone == tuple((topic, partition, 0, 3) for partition in range(6))
    assert few < many == 6


@pytest.mark.usefixtures("no_spark")
def test_nothing_is_kept_of_a_batch_of_which_a_task_failed(
    shared_server: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, numbered(0, 10))
    fill(shared_server.kafka, topic, numbered(10, 20), partition=1)
    config, stage = config_of(shared_server, topic, tmp_path / "table"), small.stage_task

    def failing(partition: InputPartition, *args: Any) -> Iterator[StagedFile]:
        assert isinstance(partition, TaskPartition)
        if partition.tasks[0].range.source.partition:
            raise SourceError("it is gone")
        return stage(partition, *args)

    with monkeypatch.context() as patched:
        patched.setattr(small, "stage_task", failing)
        with pytest.raises(PipelineError, match="it is gone"):
            run(config)
    assert not list((tmp_path / "table").glob("*.parquet"))
    assert run(config) == 20
    assert not list((tmp_path / "table" / "_penstock" / "staging").iterdir())


@pytest.mark.usefixtures("no_spark")
def test_a_run_from_the_latest_offsets_keeps_where_it_began(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    config = config_of(shared_server, topic, tmp_path / "table", starting_offsets="latest")
    assert run(config) == 0
    fill(shared_server.kafka, topic, numbered(10, 15))
    assert run(config) == 5


@pytest.mark.usefixtures("no_spark")
def test_a_small_run_can_be_stopped_between_batches(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 30))
    stopped = Run(config_of(shared_server, topic, tmp_path / "table", batch_rows=10))
    progress = stopped.run(lambda _: stopped.stop())
    assert (progress.rows, progress.behind) == (10, 20)


@pytest.mark.usefixtures("no_spark")
def test_a_topic_that_was_made_anew_ends_a_small_run(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    config = config_of(shared_server, topic, tmp_path / "table")
    fill(shared_server.kafka, topic, numbered(0, 10))
    run(config)
    with KafkaClient(shared_server.kafka) as client:
        client.delete_topic(topic)
        client.create_topic(topic, 1)
    with pytest.raises(PipelineError, match="was deleted and made anew"):
        run(config)


def test_what_needs_spark_is_left_to_it(tmp_path: Path, no_spark: None) -> None:
    config = PipelineConfig("127.0.0.1:1", ("orders",), tmp_path)
    table = open_table(TableConfig(str(tmp_path)))
    assert may_go_without_spark(config, table)
    for other in (
        replace(config, interval_seconds=1.0),
        replace(config, master="local[2]"),
        replace(config, expectations=(Expectation("one", "true"),)),
    ):
        assert not may_go_without_spark(other, table)
    table.checkpoint.joinpath("state").mkdir(parents=True)
    assert not may_go_without_spark(config, table)


def test_where_spark_runs_it_is_used(
    tmp_path: Path, no_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "is_open", lambda: True)
    table = open_table(TableConfig(str(tmp_path)))
    assert not may_go_without_spark(PipelineConfig("127.0.0.1:1", ("orders",), tmp_path), table)


def test_much_is_left_to_spark() -> None:
    assert is_small(Found(1, small.SMALL_ROWS, small.SMALL_BYTES, {}))
    assert not is_small(Found(1, small.SMALL_ROWS + 1, 0, {}))
    assert not is_small(Found(1, 1, small.SMALL_BYTES + 1, {}))


def test_the_command_prints_a_line_a_batch(shared_server: BrokerProcess, tmp_path: Path) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 30))
    command = [sys.executable, "-m", "penstock", "pipeline", "run", topic, "--json-lines"]
    command += ["--server", shared_server.kafka, "--table", str(tmp_path / "table")]
    done = subprocess.run([*command, "--batch-rows", "10"], capture_output=True, check=True)
    stored = (tmp_path / "table" / "_penstock" / "batches.jsonl").read_bytes()
    assert done.stdout == stored
    assert [json.loads(line)["rows"] for line in stored.splitlines()] == [10, 10, 10]
    assert b"30 rows in 3 batches" in done.stderr
    assert not (tmp_path / "table" / "_penstock" / "spark.log").exists()
