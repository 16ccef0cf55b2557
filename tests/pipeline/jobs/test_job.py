from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.jobs.config import PipelineConfig, WriteMode
from penstock.pipeline.jobs.job import PipelineError, Progress, Run
from penstock.pipeline.tables.interface import TableConfig, TableError, TableFormat
from penstock.pipeline.tables.opening import open_table
from spark_topics import create, fill, numbered
from table_readers import READERS, offsets_seen

SECONDS = 300
PLACE = [("partition", "ascending"), ("offset", "ascending")]


def run(address: str, topic: str, table: Path, **settings: object) -> Progress:
    reports: list[Progress] = []
    config = PipelineConfig(address, (topic,), table, **settings)  # type: ignore[arg-type]
    return Run(config).run(reports.append)


def test_a_table_is_brought_up_to_date(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, [*numbered(0, 1000), (None, None)])
    fill(shared_server.kafka, topic, numbered(0, 500), partition=1)
    table = tmp_path / "table"
    assert run(shared_server.kafka, topic, table, batch_rows=600).rows == 1501
    fill(shared_server.kafka, topic, numbered(1000, 1100))
    progress = run(shared_server.kafka, topic, table)
    assert (progress.rows, progress.batches) == (100, 1)
    rows = spark.read.parquet(str(table))
    options = {"penstock.bootstrap.servers": shared_server.kafka, "subscribe": topic}
    source = spark.read.format("penstock").options(**options).load()
    assert rows.schema == source.schema
    found, expected = (each.toArrow().sort_by(PLACE) for each in (rows, source))
    assert found == expected
    assert found.num_rows == 1601


def test_a_running_job_can_be_stopped(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path, interval_seconds=0.1)
    job = Run(config)

    def report(progress: Progress) -> None:
        if (progress.rows, progress.behind) == (10, 0):
            job.stop()

    assert job.run(report).rows == 10


def test_a_running_job_outlives_a_restart_of_its_broker(
    spark: SparkSession, server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(server.kafka)
    fill(server.kafka, topic, numbered(0, 10))
    config = PipelineConfig(server.kafka, (topic,), tmp_path / "table", interval_seconds=0.1)
    job = Run(config)
    restarted: list[bool] = []

    def report(progress: Progress) -> None:
        if progress.rows == 10 and not restarted:
            restarted.append(True)
            server.restart()
            fill(server.kafka, topic, numbered(10, 15))
        if progress.rows == 15:
            job.stop()

    assert job.run(report).rows == 15


def test_a_job_that_fails_says_why(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match="no topic named nosuch"):
        run(shared_server.kafka, "nosuch", tmp_path)


def test_a_table_without_its_checkpoint_is_refused(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    run(shared_server.kafka, topic, tmp_path / "table")
    with pytest.raises(PipelineError, match="written by another query"):
        run(shared_server.kafka, topic, tmp_path / "table", checkpoint=tmp_path / "other")


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
def test_a_table_of_another_format_is_brought_up_to_date(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    topic = create(shared_server.kafka, 2)
    fill(shared_server.kafka, topic, numbered(0, 600))
    fill(shared_server.kafka, topic, numbered(0, 500), partition=1)
    table = tmp_path / "table"
    assert run(shared_server.kafka, topic, table, table_format=kind, batch_rows=600).rows == 1100
    fill(shared_server.kafka, topic, numbered(600, 700))
    assert run(shared_server.kafka, topic, table, table_format=kind).rows == 100
    for reader in READERS[kind]:
        seen = offsets_seen(reader, TableConfig(str(table), kind))
        assert seen == sorted([*range(700), *range(500)])


def test_a_table_of_the_newest_rows_is_brought_up_to_date(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    by = {"key": ("key",), "partition_by": ("partition", "day(timestamp)")}
    settings: dict[str, object] = {
        "table_format": TableFormat.DELTA,
        "mode": WriteMode.UPSERT,
        **by,
    }
    fill(shared_server.kafka, topic, [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")])
    run(shared_server.kafka, topic, tmp_path, **settings)
    fill(shared_server.kafka, topic, [(b"b", None), (b"c", b"1")])
    run(shared_server.kafka, topic, tmp_path, **settings)
    for reader in READERS[TableFormat.DELTA]:
        assert offsets_seen(reader, TableConfig(str(tmp_path), TableFormat.DELTA)) == [2, 4]


def test_two_runs_on_one_table_are_refused_before_spark_starts(tmp_path: Path) -> None:
    with (
        open_table(TableConfig(str(tmp_path / "table"))).only_writer(),
        pytest.raises(TableError, match="another run writes to"),
    ):
        run("127.0.0.1:1", "orders", tmp_path / "table")


def test_a_job_that_is_killed_neither_loses_nor_doubles_a_row(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = filled(shared_server, 4000)
    table = tmp_path / "table"
    kill_when(job(shared_server, topic, table, 2000), lambda: has_staged(table))
    run(shared_server.kafka, topic, table, batch_rows=2000)
    holds_each_row_once(table, 4000)


def test_that_java_was_killed_is_said_in_words(server: BrokerProcess, tmp_path: Path) -> None:
    topic = create(server.kafka)
    fill(server.kafka, topic, numbered(0, 10))
    command = [sys.executable, "-m", "penstock", "pipeline", "run", topic, "--every", "0.1"]
    command += ["--table", str(tmp_path / "table"), "--server", server.kafka]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    try:
        while not list((tmp_path / "table").glob("*.parquet")):
            assert process.poll() is None
            time.sleep(0.05)
        (java,) = (each for each in psutil.Process(process.pid).children() if each.name() == "java")
        java.kill()
        errors = process.communicate(timeout=SECONDS)[1].decode()
    finally:
        process.kill()
    assert process.returncode == 1
    # PySpark itself prints what its own thread for accumulators thinks of it.
    assert "Connection refused" not in errors
    assert errors.splitlines()[-1].startswith("penstock: Spark's Java is gone: it was killed")


def test_a_batch_that_was_decided_is_finished_by_the_next_run(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    table = tmp_path / "table"
    fill(shared_server.kafka, topic, numbered(0, 100))
    run(shared_server.kafka, topic, table)
    before = {*table.glob("*.parquet")}
    fill(shared_server.kafka, topic, numbered(100, 150))
    run(shared_server.kafka, topic, table)
    # As a crash leaves it right after the decision: nothing is published, Spark has no note of it.
    (published,) = {*table.glob("*.parquet")} - before
    (decided,) = json.loads(decisions(table)[-1].read_bytes())["files"]
    published.rename(table / "_penstock" / "staging" / decided["staged"])
    (table / "_checkpoint" / "commits" / "1").unlink()
    assert run(shared_server.kafka, topic, table).rows == 50
    holds_each_row_once(table, 150, partitions=[0])


@pytest.mark.soak
@pytest.mark.timeout(3 * SECONDS + 20)
def test_a_job_that_is_killed_again_and_again_neither_loses_nor_doubles_a_row(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = filled(shared_server, 20_000)
    table = tmp_path / "table"
    # Once while tasks write, once between the decision on a batch and Spark's note of it.
    kill_when(job(shared_server, topic, table, 4000), lambda: has_staged(table))
    kill_when(job(shared_server, topic, table, 4000), lambda: len(decisions(table)) >= 2)
    last = job(shared_server, topic, table, 4000)
    assert json.loads(last.communicate(timeout=SECONDS)[0])["rows"] > 0
    holds_each_row_once(table, 20_000)


def filled(server: BrokerProcess, count: int) -> str:
    """Create a topic of two partitions with so many rows each."""
    topic = create(server.kafka, 2)
    for partition in (0, 1):
        fill(server.kafka, topic, numbered(0, count), partition=partition)
    return topic


def has_staged(table: Path) -> bool:
    return any((table / "_penstock" / "staging").glob("*.parquet"))


def decisions(table: Path) -> list[Path]:
    return sorted((table / "_penstock" / "commits").glob("*.json"))


def holds_each_row_once(table: Path, count: int, partitions: Sequence[int] = (0, 1)) -> None:
    files = [str(file) for file in table.glob("*.parquet")]
    rows = ds.dataset(files).to_table(columns=["partition", "offset", "value"]).to_pylist()
    found = sorted((row["partition"], row["offset"], row["value"]) for row in rows)
    assert found == [
        (partition, offset, b"v%d" % offset) for partition in partitions for offset in range(count)
    ]


def job(server: BrokerProcess, topic: str, table: Path, batch_rows: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock", "pipeline", "run", topic, "--table", str(table)]
    command += ["--server", server.kafka, "--batch-rows", str(batch_rows), "--format", "json"]
    command += ["--master", "local[2]"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)


def kill_when(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    """End the job, its Java and its workers as a crash does, as soon as the condition holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, "the job ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
