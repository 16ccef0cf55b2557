"""What is older than a table, added to it while its job goes on."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import deltalake
import duckdb
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.jobs import backfill as backfills
from penstock.pipeline.jobs.backfill import Backfill, Filled
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.checks import CheckError, look_at_table
from penstock.pipeline.jobs.config import (
    Deduplication,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
    TopicTarget,
    WriteMode,
)
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.source.readers import BatchReader
from penstock.pipeline.tables.interface import ChangeForm, TableConfig, TableError, TableFormat
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.parquet import ParquetTable
from spark_topics import Record, create, fill, numbered
from table_readers import READERS, offsets_seen
from taking_back import expire_newer, take_back

OLD, THERE = 60, 100
"""The table begins at the first, and its topic ends at the second."""

TAKEN_BACK = r"was taken back to an older version \(RESTORE, rollback"

ROUNDS = 30
"""Times that a backfill and its job are killed."""


def begun(server: BrokerProcess, table: Path, **settings: Any) -> PipelineConfig:
    """Return a pipeline whose table has what its topic holds from OLD on."""
    topic = create(server.kafka)
    fill(server.kafka, topic, numbered(0, THERE))
    config = PipelineConfig(server.kafka, (topic,), table, **settings)
    run(replace(config, starting_offsets=json.dumps({topic: {"0": OLD}})))
    return config


def run(config: PipelineConfig) -> int:
    return Run(config).run(lambda _: None).rows


def filled(config: PipelineConfig, begin: str = "earliest") -> Filled:
    return Backfill(config, lambda _: None).run(begin)


def holds(config: PipelineConfig, rows: int, first: int = 0) -> None:
    for reader in READERS[config.table_format]:
        table = TableConfig(str(config.table), config.table_format)
        assert offsets_seen(reader, table) == list(range(first, rows))


@pytest.mark.usefixtures("no_spark")
def test_what_spark_fails_with_is_said_in_words(
    shared_server: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = begun(shared_server, tmp_path / "table")
    spark = MagicMock()
    failure = PySparkException("Job aborted\nValueError: the cause\n\tat org.apache.spark")
    spark.read.format.return_value.options.return_value.load.side_effect = failure
    monkeypatch.setattr(backfills, "open_session", lambda *_: spark)
    with pytest.raises(CheckError, match=r"^the cause$"):
        filled(replace(config, master="spark://127.0.0.1:7077"))


@pytest.mark.parametrize("kind", list(TableFormat))
@pytest.mark.usefixtures("no_spark")
def test_a_table_is_filled_while_its_job_goes_on(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    config = begun(shared_server, tmp_path / "table", table_format=kind)
    lines: list[Mapping[str, Any]] = []

    def go_on(line: Mapping[str, Any]) -> None:
        first = THERE + 5 * len(lines)
        fill(shared_server.kafka, config.topics[0], numbered(first, first + 5))
        assert run(config) == 5
        lines.append(line)

    done = Backfill(replace(config, batch_rows=25), go_on).run("earliest")
    assert done == Filled(3, OLD, 0)
    assert [(line["rows"], line["behind"]) for line in lines] == [(25, 35), (25, 10), (10, 0)]
    holds(config, THERE + 15)


@pytest.mark.usefixtures("no_spark")
def test_nothing_is_added_twice(shared_server: BrokerProcess, tmp_path: Path) -> None:
    config = begun(shared_server, tmp_path / "table")
    begin = json.dumps({config.topics[0]: {"0": 40}})
    assert filled(config, begin).rows == 20
    assert filled(config).rows == 40
    assert filled(config) == Filled(0, 0, 0)
    with pytest.raises(CheckError, match="is to be read from 1 and is in the table from 0 on"):
        filled(config, json.dumps({config.topics[0]: {"0": 1}}))
    holds(config, THERE)


CUTS: dict[str, tuple[type, str]] = {
    "a batch is planned": (BatchReader, "partitions"),
    "its rows are staged": (ParquetTable, "commit"),
    "it is part of the table": (Checkpoint, "finish"),
}


class CutError(Exception):
    """A backfill ends in the middle."""


@pytest.mark.parametrize("after", CUTS)
@pytest.mark.usefixtures("no_spark")
def test_a_backfill_that_is_cut_off_is_taken_up(
    shared_server: BrokerProcess, tmp_path: Path, after: str
) -> None:
    config = begun(shared_server, tmp_path / "table", batch_rows=20)

    def cut(*_: object) -> None:
        raise CutError

    def cut_next(_: object) -> None:
        patched.setattr(*CUTS[after], cut)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(CutError):
        Backfill(config, cut_next).run("earliest")
    with pytest.raises(CheckError, match=r"a backfill of .* from earliest is not at its end"):
        filled(config, json.dumps({config.topics[0]: {"0": 40}}))
    assert run(config) == 0
    assert filled(config) == Filled(2, 40, 0)
    holds(config, THERE)


@pytest.mark.usefixtures("no_spark")
def test_a_backfill_can_be_stopped_between_batches(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    config = begun(shared_server, tmp_path / "table", batch_rows=20)
    backfill = Backfill(config, lambda _: backfill.stop())
    assert backfill.run("earliest") == Filled(1, 20, 40)
    assert filled(config) == Filled(2, 40, 0)


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
@pytest.mark.usefixtures("no_spark")
def test_a_backfill_is_not_taken_up_behind_batches_that_another_engine_took_back(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    table = tmp_path / "table"
    config = begun(shared_server, table, batch_rows=20, table_format=kind)
    for _ in range(2):
        backfill = Backfill(config, lambda _: backfill.stop())  # noqa: B023  # each stops itself
        assert backfill.run("earliest").rows == 20
    take_back(table, kind, 0)
    for going_on in (run, filled):
        with pytest.raises(TableError, match=TAKEN_BACK):
            going_on(config)
    take_back(table, kind, 1)
    assert filled(config) == Filled(1, 20, 0)
    holds(config, THERE)


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
@pytest.mark.usefixtures("no_spark")
def test_a_job_does_not_go_on_without_what_a_backfill_that_is_done_had_added(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    table = tmp_path / "table"
    config = begun(shared_server, table, batch_rows=20, table_format=kind)
    assert filled(config) == Filled(3, 60, 0)
    assert run(config) == 0
    take_back(table, kind, 1)
    for _ in range(2):
        with pytest.raises(TableError, match=TAKEN_BACK):
            run(config)
    with pytest.raises(CheckError, match=TAKEN_BACK):
        look_at_table(config)
    take_back(table, kind, 2)
    look_at_table(config)
    assert run(config) == 0
    holds(config, THERE)
    take_back(table, kind, 1)
    if kind is TableFormat.ICEBERG:
        expire_newer(table)
    with pytest.raises(TableError, match=TAKEN_BACK):
        run(config)
    fill(shared_server.kafka, *config.topics, numbered(THERE, THERE + 1))
    assert run(replace(config, fail_on_data_loss=False)) == 1
    fill(shared_server.kafka, *config.topics, numbered(THERE + 1, THERE + 2))
    assert run(config) == 1


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
@pytest.mark.usefixtures("no_spark")
def test_a_job_that_runs_notices_that_a_backfill_was_taken_back(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    table = tmp_path / "table"
    config = begun(shared_server, table, batch_rows=20, table_format=kind)
    fill(shared_server.kafka, *config.topics, numbered(THERE, THERE + 60))
    done: list[int] = []

    def after(batch: Mapping[str, Any]) -> None:
        if not done:
            filled(config)
            take_back(table, kind, 1)
        done.append(batch["batch"])

    with pytest.raises(TableError, match=TAKEN_BACK):
        Run(config, after).run(lambda _: None)
    assert done == [2]


def test_rows_that_spark_computes_are_added_and_held_against_expectations(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    expectation = Expectation("even", "offset % 2 = 0", Otherwise.QUARANTINE)
    config = begun(shared_server, tmp_path / "table", expectations=(expectation,))
    lines: list[Mapping[str, Any]] = []
    assert Backfill(config, lines.append).run("earliest").rows == OLD // 2
    assert lines[0]["unmet"] == {"even": OLD // 2}
    for name, odd in (("table", 0), ("table-quarantine", 1)):
        rows = duckdb.sql(f"select \"offset\" from '{tmp_path / name}/part-*.parquet' order by 1")
        assert [offset for (offset,) in rows.fetchall()] == list(range(odd, THERE, 2))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {
                "mode": WriteMode.UPSERT,
                "key": ("key",),
                "expectations": (Expectation("e", "true", Otherwise.DROP),),
            },
            "whether a newer deletion meets the expectations",
        ),
        ({"deduplication": Deduplication(("key",), "timestamp", 1.0)}, "are doubles of those"),
        ({"target_topic": TopicTarget("checked", "127.0.0.1:1")}, "can only be appended to"),
    ],
)
def test_what_can_not_be_filled_is_refused(
    tmp_path: Path, settings: dict[str, Any], why: str
) -> None:
    config = PipelineConfig("127.0.0.1:1", ("orders",), tmp_path, **settings)
    with pytest.raises(CheckError, match=why):
        Backfill(config, lambda _: None)


def changes(count: int, keys: int, chance: random.Random) -> list[Record]:
    """Return changes of some keys, a quarter of them tombstones."""
    values = (None if chance.random() < 0.25 else b"v%d" % each for each in range(count))
    return [(b"k%d" % chance.randrange(keys), value) for value in values]


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
@pytest.mark.usefixtures("no_spark")
def test_older_rows_come_under_the_newer_ones_of_their_key(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    chance = random.Random(5)
    topic = create(shared_server.kafka)
    written = changes(THERE, 40, chance)
    fill(shared_server.kafka, topic, written)
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        tmp_path / "table",
        table_format=kind,
        mode=WriteMode.UPSERT,
        key=("key",),
    )
    run(replace(config, starting_offsets=json.dumps({topic: {"0": OLD}})))
    behind = []

    def go_on(line: Mapping[str, Any]) -> None:
        """Change keys of which the table knows nothing, or has older rows since this moment."""
        behind.append(line["behind"])
        if len(behind) == 1:
            raise CutError
        newest = {key: (offset, key) for offset, (key, value) in enumerate(written) if value}
        _, oldest = min(newest[key] for key, value in dict(written).items() if value)
        newer = [*changes(6, 40, chance), (oldest, None)]
        fill(shared_server.kafka, topic, newer)
        written.extend(newer)
        if len(behind) == 2:
            run(config)

    backfill = replace(config, batch_rows=20)
    with pytest.raises(CutError):
        Backfill(backfill, go_on).run("earliest")
    Backfill(backfill, go_on).run("earliest")
    assert behind == [40, 20, 0]
    run(config)
    newest = {key: (offset, value) for offset, (key, value) in enumerate(written)}
    wanted = sorted(offset for offset, value in newest.values() if value is not None)
    assert min(wanted) < OLD
    table = TableConfig(str(config.table), kind)
    assert offsets_seen(READERS[kind][0], table) == wanted
    assert not (config.table / "_penstock" / "backfill").exists()


@pytest.mark.usefixtures("no_spark")
def test_a_partition_whose_older_rows_are_gone_keeps_no_other_from_being_filled(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka, partitions=2)
    for partition, name in enumerate((b"a", b"b")):
        rows = [(name + b"%d" % each, b"v") for each in range(6)]
        fill(shared_server.kafka, topic, [*rows, (name + b"1", None)], partition=partition)
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        tmp_path / "table",
        table_format=TableFormat.DELTA,
        mode=WriteMode.UPSERT,
        key=("key",),
    )
    run(replace(config, starting_offsets=json.dumps({topic: {"0": 4, "1": 4}})))
    with KafkaClient(shared_server.kafka) as client:
        client.delete_records(topic, {1: 5})
    assert filled(config).behind == 0
    keys = deltalake.DeltaTable(config.table).to_pyarrow_table()["key"].to_pylist()
    assert sorted(keys) == [b"a0", b"a2", b"a3", b"a4", b"a5", b"b4", b"b5"]


def moved(number: int, to: int | None) -> Record:
    after = None if to is None else {"id": to}
    change = {"op": "d" if to is None else "u", "before": {"id": number}, "after": after}
    return b"%d" % number, json.dumps(change).encode()


@pytest.mark.usefixtures("no_spark")
def test_a_row_that_the_database_has_moved_or_deleted_does_not_come_back(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    made = [(b"%d" % each, b'{"op": "c", "after": {"id": %d}}' % each) for each in range(6)]
    fill(shared_server.kafka, topic, [*made, moved(0, 9), moved(1, 10), moved(2, None)])
    row = "STRUCT<id: BIGINT>"
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        tmp_path / "table",
        table_format=TableFormat.DELTA,
        mode=WriteMode.UPSERT,
        key=("id",),
        changes=ChangeForm.DEBEZIUM,
        parsing=Parsing(f"op STRING, before {row}, after {row}"),
    )
    run(replace(config, starting_offsets=json.dumps({topic: {"0": 7}})))
    assert filled(config).behind == 0
    rows = deltalake.DeltaTable(config.table).to_pyarrow_table()
    assert sorted(rows["id"].to_pylist()) == [3, 4, 5, 9, 10]


@pytest.mark.usefixtures("no_spark")
def test_a_table_that_does_not_say_where_it_begins_is_refused(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    config = begun(shared_server, tmp_path / "table")
    with pytest.raises(CheckError, match="begins before the table does"):
        filled(config, "latest")
    other = replace(config, table=tmp_path / "other")
    with pytest.raises(CheckError, match="does not say where it begins"):
        filled(other)
    table = open_table(TableConfig(str(config.table), backfill=True))
    with table.only_writer(), pytest.raises(TableError, match="another run writes to"):
        filled(config)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", list(TableFormat))
def test_a_backfill_and_its_job_that_are_killed_neither_lose_nor_double_a_row(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat
) -> None:
    """Goal: each row once. Method: end both at any moment, again and again, and let them end."""
    config = begun(shared_server, tmp_path / "table", table_format=kind)
    (topic,) = config.topics
    file = tmp_path / "orders.toml"
    file.write_text(
        f'[read]\nserver = "{config.servers}"\ntopics = ["{topic}"]\n'
        f'[write]\ntable = "table"\nformat = "{kind}"\n[run]\nbatch_rows = 5\n'
    )
    commands = [
        [sys.executable, "-m", "penstock", "pipeline", verb, str(file)]
        for verb in ("run", "backfill")
    ]
    chance = random.Random(12)
    end = THERE
    for _ in range(ROUNDS // len(TableFormat)):
        fill(shared_server.kafka, topic, numbered(end, end + 20))
        end += 20
        both = [subprocess.Popen(command) for command in commands]
        time.sleep(chance.uniform(1.0, 5.0))
        for process in both:
            process.kill()
            process.wait()
    for command in reversed(commands):
        subprocess.run(command, check=True)
    holds(config, end)
