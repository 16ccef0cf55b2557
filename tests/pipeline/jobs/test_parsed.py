"""Tables of parsed values, written by the tasks that read them: no row passes through Java."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from avro_values import encode, field, record
from broker_process import BrokerProcess
from penstock.pipeline.jobs import job, small
from penstock.pipeline.jobs.config import Parsing, PipelineConfig, WriteMode
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.jobs.opening import writing_of
from penstock.pipeline.jobs.settings import source_options, table_config
from penstock.pipeline.jobs.writing import PastJava, Stepped
from penstock.pipeline.source.options import parse
from penstock.pipeline.tables.interface import ChangeForm, TableError, TableFormat
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.shaping import shape_of
from penstock.pipeline.values import registry as client
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.flattening import flattened
from penstock.pipeline.values.options import OnParseError
from schema_registry import SchemaRegistry, framed, schema_registry
from spark_topics import create, fill

DDL = "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, origin STRUCT<city: STRING>, day DATE"
FIRST = record(field("id", "int"), field("name", "string"))
SECOND = record(field("id", "long"), field("note", ["null", "string"], default=None))


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a run take no notice of the Spark of other tests."""
    monkeypatch.setattr(small, "is_open", lambda: False)
    monkeypatch.setattr(job, "open_session", None)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    client.schema_by_id.cache_clear()
    with schema_registry() as running:
        yield running


def pipeline(
    server: BrokerProcess, folder: Path, schema: str = DDL, **settings: Any
) -> PipelineConfig:
    parsing = Parsing(schema, OnParseError.DEAD_LETTER, folder / "dead")
    topic = create(server.kafka)
    return PipelineConfig(server.kafka, (topic,), folder / "table", parsing=parsing, **settings)


def rows(config: PipelineConfig) -> pa.Table:
    snapshot = open_table(table_config(config)).snapshot()
    assert snapshot is not None
    files = [pq.read_table(file, partitioning=None) for file in snapshot.files]
    return pa.concat_tables(files, promote_options="permissive").sort_by("_offset")


@pytest.mark.usefixtures("no_spark")
def test_values_are_columns_and_bad_records_are_elsewhere_once(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    config = pipeline(shared_server, tmp_path)
    values = [
        b'{"id": 1, "at": "2026-11-22T23:30:00Z", "tags": ["a", null], "origin": {"city": "Ulm"}}',
        b'{"id": "one"}',
        None,
        b'{"id": 2}',
    ]
    fill(shared_server.kafka, config.topics[0], [(b"k", value) for value in values])
    assert Run(config).run(lambda _: None).rows == 3
    (config.table / "_checkpoint" / "commits" / "0").unlink()  # As if it had been killed.
    Run(config).run(lambda _: None)
    found = rows(config)
    assert found["id"].to_pylist() == [1, None, 2]
    assert found["tags"].to_pylist() == [["a", None], None, None]
    assert found["origin"].to_pylist() == [{"city": "Ulm"}, None, None]
    assert found["_offset"].to_pylist() == [0, 2, 3]
    assert found["_key"].to_pylist() == [b"k"] * 3
    (letter,) = pq.read_table(tmp_path / "dead").to_pylist()
    assert (letter["offset"], letter["value"]) == (1, b'{"id": "one"}')


@pytest.mark.usefixtures("no_spark")
def test_a_record_that_is_not_of_its_schema_ends_the_run(
    shared_server: BrokerProcess, tmp_path: Path
) -> None:
    config = replace(pipeline(shared_server, tmp_path), parsing=Parsing("id INT"))
    fill(shared_server.kafka, config.topics[0], [(None, b'{"id": 1}'), (None, b'{"id": "one"}')])
    with pytest.raises(PipelineError, match="offset 1 is not of its schema: id: a value of anoth"):
        Run(config).run(lambda _: None)
    with pytest.raises(PipelineError, match="schema: a type such as BIGINT"):
        Run(replace(config, parsing=Parsing("id NUMBER"))).run(lambda _: None)
    assert open_table(table_config(config)).snapshot() is None


@pytest.mark.usefixtures("no_spark")
def test_the_table_follows_the_registry_from_batch_to_batch(
    shared_server: BrokerProcess, registry: SchemaRegistry, tmp_path: Path
) -> None:
    """A column comes, another one goes from the schema, and a third is widened."""
    iceberg = {"table_format": TableFormat.ICEBERG, "batch_rows": 1}
    config = pipeline(shared_server, tmp_path, registry.url, **iceberg)
    (topic,) = config.topics
    old = registry.register(f"{topic}-value", FIRST)
    (first,) = encode(FIRST, {"id": 1, "name": "a"})
    (second,) = encode(SECOND, {"id": 2**40, "note": "b"})
    newer: list[int] = []

    def evolve(batch: Mapping[str, Any]) -> None:
        if batch["batch"] == 0:
            newer.append(registry.register(f"{topic}-value", SECOND))
            assert newer == [old + 1]

    values = [framed(old, first), framed(old + 1, second), framed(old, first)]
    fill(shared_server.kafka, topic, [(None, value) for value in values])
    Run(config, evolve).run(lambda _: None)
    found = rows(config)
    assert found["id"].to_pylist() == [1, 2**40, 1]
    assert found["note"].to_pylist() == [None, "b", None]
    assert found["name"].to_pylist()[:2] == ["a", None]
    snapshot = open_table(table_config(config)).snapshot()
    assert snapshot is not None
    assert snapshot.schema.field("id").type == pa.int64()


@pytest.mark.usefixtures("no_spark")
def test_a_type_that_a_table_can_not_have_is_refused_before_a_row(
    shared_server: BrokerProcess, registry: SchemaRegistry, tmp_path: Path
) -> None:
    config = pipeline(shared_server, tmp_path, registry.url)
    (topic,) = config.topics
    old = registry.register(f"{topic}-value", FIRST)
    fill(shared_server.kafka, topic, [(None, framed(old, *encode(FIRST, {"id": 1, "name": "a"})))])
    assert Run(config).run(lambda _: None).rows == 1
    new = registry.register(f"{topic}-value", SECOND)
    fill(
        shared_server.kafka, topic, [(None, framed(new, *encode(SECOND, {"id": 2, "note": None})))]
    )
    with pytest.raises(TableError, match="id is int32 in the table and int64 in the rows"):
        Run(config).run(lambda _: None)
    assert rows(config).num_rows == 1


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("name", ["_offset", "_Offset", "_penstock_deleted"])
def test_a_field_that_would_be_lost_behind_another_column_is_refused(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, name: str
) -> None:
    config = pipeline(shared_server, tmp_path, f"id INT, {name} INT")
    with pytest.raises(PipelineError, match=f"values have a field {name}, and so is a column"):
        Run(config).run(lambda _: None)
    with pytest.raises(SchemaError, match=f"values have a field {name}, and so is a column"):
        Stepped(config).begin(spark)
    assert not list(config.table.glob("*.parquet"))


@pytest.mark.parametrize("form", list(ChangeForm))
def test_columns_are_those_that_spark_would_make(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, form: ChangeForm
) -> None:
    row = "STRUCT<id: BIGINT, price: DECIMAL(10, 2), m: MAP<STRING, INT>>"
    schema = DDL if form is ChangeForm.ROWS else f"op STRING, before {row}, after {row}"
    changed = {"mode": WriteMode.UPSERT, "key": ("id",), "table_format": TableFormat.DELTA}
    settings = {} if form is ChangeForm.ROWS else changed
    config = pipeline(
        shared_server, tmp_path, schema, changes=form, include_headers=True, **settings
    )
    assert isinstance(writing_of(config), PastJava)
    expected = to_arrow_schema(Stepped(config).begin(spark).schema, timezone="UTC")
    assert shape_of(parse(source_options(config), streaming=True), form).schema.equals(expected)


def test_fields_of_a_null_are_null_however_deep() -> None:
    inner = pa.struct([pa.field("id", pa.int64())])
    values = pa.array(
        [{"payload": {"id": 1}}, {"payload": None}, None], pa.struct([pa.field("payload", inner)])
    )
    made = flattened(pa.record_batch({"value": values, "offset": [0, 1, 2]}), ["payload"])
    assert made.to_pydict() == {"id": [1, None, None], "_offset": [0, 1, 2]}
