"""The pipeline that a table's folder names."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from penstock.pipeline.jobs.config import (
    Deduplication,
    DefinitionError,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
    TopicTarget,
    WriteMode,
)
from penstock.pipeline.jobs.recording import record, recorded
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.tables.interface import ChangeForm, TableFormat, state_folder
from penstock.pipeline.values.options import OnParseError


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    """A pipeline of which nothing is as it is by default, but for what keys do not go with."""
    (tmp_path / "schema.avsc").touch()
    folder = state_folder(tmp_path / "table")
    folder.mkdir(parents=True)
    return PipelineConfig(
        "localhost:1,localhost:2",
        ("a", "b"),
        tmp_path / "table",
        store="s3://lake/table",
        catalog="http://localhost:3",
        table_format=TableFormat.ICEBERG,
        checkpoint=tmp_path / "checkpoint",
        interval_seconds=2.5,
        starting_offsets='{"a": {"0": 1}}',
        read_mode=ReadMode.WIRE,
        batch_rows=7,
        include_headers=True,
        fail_on_data_loss=False,
        compression="snappy",
        master="local[1]",
        parsing=Parsing(str(tmp_path / "schema.avsc"), OnParseError.DEAD_LETTER, tmp_path / "dead"),
        expectations=(Expectation("a", "a > 0"), Expectation("b", "b", Otherwise.FAIL)),
        mode=WriteMode.UPSERT,
        key=("a", "b"),
        changes=ChangeForm.DEBEZIUM,
        partition_by=("day(t)",),
        target_topic=TopicTarget("c", "localhost:4", (("token", "$C"),)),
        backfill=True,
        access=(("tlsCaFile", "ca.pem"), ("kafka.sasl.mechanism", "PLAIN")),
    )


def test_the_pipeline_of_these_tests_has_nothing_by_default(config: PipelineConfig) -> None:
    alike = [each.name for each in fields(config) if getattr(config, each.name) == each.default]
    assert alike == ["deduplication"]


def test_all_of_it_comes_back(config: PipelineConfig) -> None:
    record(config)
    assert recorded(config.table) == config
    wide = ", ".join(f"column{number} BIGINT" for number in range(200))
    plain = PipelineConfig("localhost:1", ("a",), config.table, parsing=Parsing(wide))
    plain = replace(plain, deduplication=Deduplication(("a",), "t", 3.0))
    record(plain)
    assert recorded(config.table) == plain


def test_paths_are_those_of_the_run(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    parsing = Parsing("schema.avsc", OnParseError.DEAD_LETTER, Path("dead"))
    record(replace(config, table=Path("table"), checkpoint=Path("checkpoint"), parsing=parsing))
    assert recorded(config.table) == config


def test_nobody_else_reads_the_password_of_a_registry(config: PipelineConfig) -> None:
    record(config)
    assert (state_folder(config.table) / "pipeline.json").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_no_pipeline_wrote_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="does not say which pipeline writes it"):
        recorded(tmp_path)


@pytest.mark.parametrize(
    "change", [{"unknown": 1}, {"table_format": "orc"}, {"parsing": {"unknown": 1}}, {"topics": 1}]
)
def test_one_of_another_version_is_refused(
    config: PipelineConfig, change: dict[str, object]
) -> None:
    record(config)
    file = state_folder(config.table) / "pipeline.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(DefinitionError, match="of another version of Penstock, or damaged"):
        recorded(config.table)


@pytest.mark.parametrize("text", ["", "[]", "7", "null", '{"servers": "a"}', "\x00"])
def test_a_damaged_one_is_refused(config: PipelineConfig, text: str) -> None:
    (state_folder(config.table) / "pipeline.json").write_text(text)
    with pytest.raises(DefinitionError, match="of another version of Penstock, or damaged"):
        recorded(config.table)
