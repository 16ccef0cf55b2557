"""A live table by options alone: what tasks read of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull

from broker_process import BrokerProcess
from object_store import KEY, object_store
from penstock.pipeline.data_source import PenstockSource
from penstock.pipeline.jobs import job, small
from penstock.pipeline.jobs.config import Expectation, Parsing, PipelineConfig, WriteMode
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.jobs.recording import record
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.live.source import live_reader, live_schema
from penstock.pipeline.live.table import live_table
from penstock.pipeline.source.option_values import OptionError
from penstock.pipeline.tables.interface import TableFormat, state_folder
from penstock.pipeline.values.options import OnParseError
from spark_topics import create, fill, numbered
from topic_tables import write_all


@pytest.fixture
def config(shared_server: BrokerProcess, tmp_path: Path) -> PipelineConfig:
    """A pipeline whose table lacks five of its topic's 25 messages."""
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 20))
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "table")
    write_all(config)
    fill(shared_server.kafka, topic, numbered(20, 25))
    return config


def read(place: Path, filters: list[Filter] | None = None) -> pa.Table:
    """Read as Spark does, whose tasks get pickled copies."""
    options = {"read": "table", "table": str(place)}
    if filters is not None:
        options["filterPushdown"] = "true"
    reader = live_reader(options, live_schema(options))
    if filters is not None:
        reader.pushFilters(filters)  # type: ignore[attr-defined]
    planned = cloudpickle.loads(cloudpickle.dumps((reader, reader.partitions())))
    batches = [batch for each in planned[1] for batch in planned[0].read(each)]
    return pa.Table.from_batches(batches).sort_by(batches[0].schema.names[-3])


def offsets(table: pa.Table) -> list[int]:
    return sorted(table["offset"].to_pylist())


def test_history_and_end_are_one_table(config: PipelineConfig) -> None:
    assert offsets(read(config.table)) == list(range(25))
    write_all(config, 1)
    found = read(config.table)
    assert offsets(found) == list(range(25))
    assert sorted(found["value"].to_pylist()) == sorted(b"v%d" % each for each in range(25))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (GreaterThan(("offset",), 17), [18, 19]),
        (In(("key",), (b"k3", b"k4")), [3, 4]),
        (EqualTo(("partition",), 7), []),
        (IsNotNull(("key",)), list(range(20))),
        (EqualTo(("unknown",), 7), list(range(20))),
    ],
)
def test_conditions_spare_reading(
    config: PipelineConfig, condition: Filter, kept: list[int]
) -> None:
    found = offsets(read(config.table, [condition]))
    assert [offset for offset in found if offset < 20] == kept


def test_parsed_values(
    shared_server: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "is_open", lambda: False)
    monkeypatch.setattr(job, "open_session", None)
    topic = create(shared_server.kafka)
    parsing = Parsing("id BIGINT, at TIMESTAMP", OnParseError.DEAD_LETTER, tmp_path / "dead")
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "table", parsing=parsing)
    fill(shared_server.kafka, topic, [(None, b'{"id": %d}' % number) for number in range(5)])
    Run(config).run(lambda _: None)
    fill(shared_server.kafka, topic, [(None, b"{"), (None, b'{"id": 5}')])
    assert read(config.table)["id"].to_pylist() == list(range(6))
    assert not list((tmp_path / "dead").iterdir())


def test_a_table_in_an_object_store(
    shared_server: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 20))
    with object_store() as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.address)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
        where = {"store": "s3://bucket/orders", "table_format": TableFormat.DELTA}
        config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "orders-state", **where)
        write_all(config)
        fill(shared_server.kafka, topic, numbered(20, 25))
        assert offsets(read(config.table)) == list(range(25))
        with pytest.raises(LiveTableError, match=r"no file system for: .* by .*read"):
            live_table(spark, config)


def test_through_spark(spark: SparkSession, config: PipelineConfig) -> None:
    frame = spark.read.format("penstock").option("read", "table").option("table", config.table)
    assert sorted(row.offset for row in frame.load().collect()) == list(range(25))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"read": "rows"}, "read must be table, or left away to read topics, not 'rows'"),
        ({"read": "table"}, "table is missing: the table's folder"),
        ({"read": "table", "table": "x", "subscribe": "a"}, "unknown option 'subscribe'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], error: str) -> None:
    with pytest.raises(OptionError, match=error):
        PenstockSource(options).schema()


@pytest.mark.parametrize(
    "change",
    [
        {"expectations": (Expectation("one", "true"),)},
        {"mode": WriteMode.UPSERT, "key": ("key",), "table_format": TableFormat.DELTA},
    ],
)
def test_what_only_spark_can_follow_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    config = replace(PipelineConfig("127.0.0.1:1", ("a",), tmp_path), **change)
    state_folder(tmp_path).mkdir()
    record(config)
    with pytest.raises(LiveTableError, match=r"read it by .*live_table"):
        live_schema({"read": "table", "table": str(tmp_path)})
