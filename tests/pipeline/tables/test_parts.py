"""Tables that are cut into parts, and tables whose columns become others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.pipeline.tables import staging
from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableError, TableFormat
from penstock.pipeline.tables.lake import LakeTable
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.table import Table
from table_readers import ROWS, rows_seen

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("time", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
    ]
)
FORMATS = list(TableFormat)
PARTS = [["name"], ["hour(time)"], ["date(time)", "name"], ["day", "offset"]]
NOON = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)


def some_rows() -> pa.RecordBatch:
    times = [NOON, NOON + timedelta(hours=1), NOON - timedelta(days=1), None]
    names = ["a b", "c/d", None, "a b"]
    days = [date(2026, 1, 1), None, date(1969, 12, 31), date(2026, 1, 1)]
    return pa.record_batch([names, [0, 1, 2, 3], times, days], schema=SCHEMA)


def staged(table: Table, rows: pa.RecordBatch, batch: int) -> list[StagedFile]:
    first, last = rows["offset"][0].as_py(), rows["offset"][-1].as_py()
    pieces = table.prepare(rows.schema).write([rows], "q", batch)
    return [
        StagedFile(p.staged, "a", 0, first, last + 1, p.rows, p.size, n, p.values, p.footer)
        for n, p in enumerate(pieces)
    ]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "by", [["name"], ["hour(time)"], ["date(time)", "name"], ["day", "offset"]]
)
def test_rows_lie_in_their_part(tmp_path: Path, kind: TableFormat, by: list[str]) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind, partition_by=tuple(by)))
    assert table.commit("q", 0, staged(table, some_rows(), 0)) == 4
    files = list(tmp_path.glob("t/**/*.parquet"))
    assert len(files) == {"name": 3, "hour(time)": 4, "date(time)": 4, "day": 4}[by[0]]
    for reader in ROWS[kind]:
        seen = rows_seen(reader, table.config, SCHEMA.names)
        assert seen == some_rows().to_pylist(), reader


@pytest.mark.parametrize("kind", FORMATS)
def test_parts_stay_as_they_are(tmp_path: Path, kind: TableFormat) -> None:
    config = TableConfig(str(tmp_path / "t"), kind, partition_by=("name",))
    open_table(config).prepare(SCHEMA)
    with pytest.raises(TableError, match="is partitioned by name: that stays as it is"):
        open_table(replace(config, partition_by=())).prepare(SCHEMA)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("week(time)", "give a column, day"),
        ("day(time", "give a column, day"),
        ("nothing", "its columns are name, offset, time, day"),
        ("day(name)", "name is string, and no time"),
        ("time", "columns of text, whole numbers"),
    ],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_what_no_part_can_be_named_by_is_refused(
    tmp_path: Path, kind: TableFormat, expression: str, message: str
) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind, partition_by=(expression,)))
    with pytest.raises(TableError, match=message):
        table.prepare(SCHEMA)
    assert not (tmp_path / "t").exists()


def test_a_value_that_no_folder_can_be_named_by_is_refused(tmp_path: Path) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), partition_by=("name",)))
    rows = some_rows().set_column(0, "name", pa.array(["a", "b" * 250, "ü" * 42, "c"]))
    table.commit("q", 0, staged(table, rows.slice(0, 2), 0))
    with pytest.raises(TableError, match=r"named by all of the value .ü.* in name, by which"):
        table.commit("q", 1, staged(table, rows.slice(2), 1))
    table.commit("q", 1, staged(table, rows.slice(3), 1))
    assert len(rows_seen(ROWS[TableFormat.PARQUET][0], table.config, ["offset"])) == 3


def test_a_task_has_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "OPEN_FILES_MAX", 2)
    table = open_table(TableConfig(str(tmp_path / "t"), partition_by=("offset",)))
    assert len(staged(table, some_rows(), 0)) == 4


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
def test_small_files_are_merged_part_by_part(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind, partition_by=("day(time)",)))
    assert isinstance(table, LakeTable)
    for batch in range(3):
        table.commit("q", batch, staged(table, some_rows(), batch))
    for values in {file.values for file in table._files()}:
        table._merge([file for file in table._files() if file.values == values])
    assert len(table._files()) == 3
    for reader in ROWS[kind]:
        assert len(rows_seen(reader, table.config, SCHEMA.names)) == 12, reader


@pytest.mark.parametrize("kind", FORMATS)
def test_a_new_column_is_null_in_older_rows(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind))
    rows = some_rows()
    table.commit("q", 0, staged(table, rows.drop_columns("name"), 0))
    table.commit("q", 1, staged(table, moved(rows, 10), 1))
    table.commit("q", 2, staged(table, moved(rows, 20).drop_columns("time"), 2))
    # Of a plain folder the reader has to be asked for the columns of all files.
    for reader in ROWS[kind][:1] if kind is TableFormat.PARQUET else ROWS[kind]:
        names = [row["name"] for row in rows_seen(reader, table.config, ["offset", "name"])]
        assert names == [None] * 4 + rows["name"].to_pylist() * 2, reader


def test_a_column_is_widened_in_iceberg(tmp_path: Path) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), TableFormat.ICEBERG))
    table.commit("q", 0, staged(table, some_rows(), 0))
    table.commit("q", 1, staged(table, moved(some_rows(), 1 << 40), 1))
    table.commit("q", 2, staged(table, moved(some_rows(), 10), 2))
    for reader in ROWS[TableFormat.ICEBERG]:
        seen = [row["offset"] for row in rows_seen(reader, table.config, ["offset"])]
        assert seen == [*range(4), *range(10, 14), *range(1 << 40, (1 << 40) + 4)], reader


@pytest.mark.parametrize("kind", FORMATS)
def test_what_does_not_fit_is_refused_before_a_row_is_written(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind))
    table.commit("q", 0, staged(table, some_rows(), 0))
    other = some_rows().set_column(0, "name", pa.array([1, 2, 3, 4]))
    with pytest.raises(TableError, match="name is string in the table and int64 in the rows"):
        table.prepare(other.schema)
    if kind is not TableFormat.ICEBERG:
        with pytest.raises(TableError, match="offset is int32 in the table and int64"):
            table.prepare(moved(some_rows(), 1 << 40).schema)


def moved(rows: pa.RecordBatch, by: int) -> pa.RecordBatch:
    kind = pa.int32() if by < 1 << 31 else pa.int64()
    offsets = pa.array([each + by for each in range(rows.num_rows)], kind)
    return rows.set_column(1, "offset", offsets)
