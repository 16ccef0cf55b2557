"""What every format promises: each row once, for any reader, whatever is run again."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from penstock.pipeline.tables import iceberg, merging
from penstock.pipeline.tables.iceberg import IcebergTable
from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableError, TableFormat
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.staging import Stager
from penstock.pipeline.tables.table import Table
from table_readers import READERS, offsets_seen

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field(
            "headers",
            pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
        ),
    ]
)
FORMATS = list(TableFormat)
LAKES = [TableFormat.DELTA, TableFormat.ICEBERG]


def config(folder: Path, kind: TableFormat, **settings: object) -> TableConfig:
    return TableConfig(str(folder / "table"), kind, **settings)  # type: ignore[arg-type]


def rows(start: int, end: int) -> pa.RecordBatch:
    numbers = range(start, end)
    columns = [
        [b"k%d" % each for each in numbers],
        [b"v%d" % each for each in numbers],
        [0] * len(numbers),
        list(numbers),
        [each * 1_000_000 for each in numbers],
        [[{"key": "h", "value": b"x"}] for each in numbers],
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def stage(table: Table, start: int, end: int, batch: int = 0, query: str = "q") -> StagedFile:
    (piece,) = table.prepare(SCHEMA).write([rows(start, end)], query, batch)
    return StagedFile(piece.staged, "a", 0, start, end, piece.rows, piece.size, footer=piece.footer)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_is_seen_once_however_often_it_is_given(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    table.prepare(SCHEMA)
    for _ in range(2):
        assert table.commit("q", 0, [stage(table, 0, 5), stage(table, 5, 7)]) == 7
    assert table.commit("q", 1, [stage(table, 7, 9, 1)]) == 2
    again = open_table(table.config)
    assert again.commit("q", 1, [stage(again, 7, 9, 1)]) == 2
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(9)), reader


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_staged_is_seen_by_nobody(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    table.prepare(SCHEMA)
    table.commit("q", 0, [stage(table, 0, 3)])
    stage(table, 3, 5, 1)
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == [0, 1, 2], reader


@pytest.mark.parametrize("kind", FORMATS)
def test_what_ended_attempts_left_is_removed(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    leftover = stage(table, 0, 5)
    table.commit("q", 0, [stage(table, 0, 5)])
    assert not list(tmp_path.glob(f"**/{Path(leftover.staged).name}"))


@pytest.mark.parametrize("kind", FORMATS)
def test_other_queries_and_older_checkpoints_are_refused(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    for batch in range(2):
        table.commit("q", batch, [stage(table, batch * 5, batch * 5 + 5, batch)])
    with pytest.raises(TableError, match="written by another query"):
        table.commit("other", 0, [stage(table, 0, 5, query="other")])
    with pytest.raises(TableError, match="committed with other offsets"):
        table.commit("q", 1, [stage(table, 5, 12, 1)])
    with pytest.raises(TableError, match="older than the table"):
        table.commit("q", 0, [stage(table, 0, 4)])
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(10)), reader


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_that_ended_elsewhere_is_refused(tmp_path: Path, kind: TableFormat) -> None:
    """Its files may say no offsets: those of rows that Spark has computed."""
    table = open_table(config(tmp_path, kind))
    for _ in range(2):
        table.commit("q", 0, [stage(table, 0, 5)], {"a": {"0": 5}})
    with pytest.raises(TableError, match="committed with other offsets"):
        table.commit("q", 0, [stage(table, 0, 5)], {"a": {"0": 7}})
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(5)), reader


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_without_rows_is_a_batch(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    table.commit("q", 0, [stage(table, 0, 5)])
    for _ in range(2):
        assert table.commit("q", 1, [StagedFile("", "a", 0, 5, 9, 0)]) == 0
    with pytest.raises(TableError, match="committed with other offsets"):
        table.commit("q", 1, [StagedFile("", "a", 0, 5, 10, 0)])


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_with_other_files_is_refused(tmp_path: Path, kind: TableFormat) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "other.parquet").touch()
    with pytest.raises(TableError, match="choose an empty folder"):
        open_table(config(tmp_path, kind)).prepare(SCHEMA)


@pytest.mark.parametrize("kind", FORMATS)
def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    nested = pa.struct([pa.field("a", pa.int64())])
    other = pa.struct([pa.field("A", pa.int64())])
    both = pa.field("both", pa.struct([*nested, *other]))
    for twin in (pa.field("Offset", pa.int64()), both):
        with pytest.raises(TableError, match=r"(Offset and offset|A and both\.a) differ by case"):
            table.prepare(SCHEMA.append(twin))
    assert not list(tmp_path.glob("**/*metadata*")), "no table has begun"
    columns = SCHEMA.append(pa.field("one", nested))
    table.prepare(columns)
    for fields in ([pa.field("Offset", pa.int64())], [pa.field("one", other)]):
        with pytest.raises(TableError, match=r"(Offset and offset|one.A and one.a) differ by case"):
            table.prepare(pa.schema(fields))
    assert isinstance(table.prepare(columns), Stager)


@pytest.mark.parametrize("kind", LAKES)
def test_two_runs_that_no_lock_keeps_apart_write_a_batch_once(
    tmp_path: Path, kind: TableFormat
) -> None:
    first, second = (open_table(config(tmp_path, kind)) for _ in range(2))
    first.commit("q", 0, [stage(first, 0, 5)])
    second.prepare(SCHEMA)
    second._own("q")
    files = [stage(table, 5, 7, 1) for table in (first, second)]
    second._refresh = lambda: None  # it looks, and then the other one commits
    first.commit("q", 1, files[:1])
    with pytest.raises(TableError, match="another run writes to"):
        second.commit("q", 1, files[1:])
    for reader in READERS[kind]:
        assert offsets_seen(reader, first.config) == list(range(7)), reader


@pytest.mark.parametrize("kind", LAKES)
def test_small_files_are_merged_while_the_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: TableFormat
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 3)
    table = open_table(config(tmp_path, kind))
    for batch in range(9):
        table.commit("q", batch, [stage(table, batch, batch + 1, batch)])
    assert len(table._files()) <= 3
    for _ in range(2):
        for reader in READERS[kind]:
            assert offsets_seen(reader, table.config) == list(range(9)), reader
        assert table.commit("q", 8, [stage(table, 8, 9, 8)]) == 1


@pytest.mark.parametrize("kind", LAKES)
def test_a_batch_that_is_given_again_with_the_same_files_keeps_them(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = open_table(config(tmp_path, kind))
    files = [stage(table, 0, 5)]
    for _ in range(2):
        assert table.commit("q", 0, files) == 5
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(5)), reader


def test_times_without_a_zone_are_what_delta_s_log_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        schema = pa.schema([pa.field("at", pa.timestamp("us")), pa.field("size", pa.float64())])
        table = open_table(config(tmp_path, TableFormat.DELTA))
        rows = pa.record_batch([[datetime(2026, 1, 1, 12)], [1.5]], schema=schema)
        (piece,) = table.prepare(schema).write([rows], "q", 0)
        place = ("a", 0, 0, 1)
        file = StagedFile(piece.staged, *place, 1, piece.size, footer=piece.footer)
        table.commit("q", 0, [file])
        (said,) = (tmp_path / "table" / "_delta_log").glob("*2.json")
        assert '\\"2026-01-01T12:00:00.000000\\"' in said.read_text()
        assert '\\"size\\": 1.5' not in said.read_text()
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("kind", LAKES)
def test_a_reader_goes_on_with_what_it_began_with(tmp_path: Path, kind: TableFormat) -> None:
    """Merged files stay where they are for those who read them."""
    table = open_table(config(tmp_path, kind))
    for batch in range(3):
        table.commit("q", batch, [stage(table, batch, batch + 1, batch)])
    before = [tmp_path / "table" / each.name for each in table._files()]
    table._merge(table._files())
    assert len(table._files()) == 1
    assert all(path.exists() for path in before)


def test_iceberg_forgets_old_snapshots_and_files_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(config(tmp_path, TableFormat.ICEBERG))
    assert isinstance(table, IcebergTable)
    for batch in range(3):
        table.commit("q", batch, [stage(table, batch, batch + 1, batch)])
    stage(table, 3, 4, 3)
    table._merge(table._files())
    table._expire()
    assert len(table._table.snapshots()) == 4
    assert len(list(tmp_path.glob("table/data/**/*.parquet"))) == 5
    monkeypatch.setattr(iceberg, "SNAPSHOTS_KEPT", timedelta(days=-1))
    table._expire()
    assert len(table._table.snapshots()) == 1
    assert len(list(tmp_path.glob("table/data/**/*.parquet"))) == 1
    assert len(list(tmp_path.glob("table/metadata/snap-*.avro"))) == 1
    for reader in READERS[TableFormat.ICEBERG]:
        assert offsets_seen(reader, table.config) == [0, 1, 2], reader
    assert table.commit("q", 2, [stage(table, 2, 3, 2)]) == 1
    table.commit("q", 3, [stage(table, 3, 4, 3)])
    assert offsets_seen(READERS[TableFormat.ICEBERG][0], table.config) == [0, 1, 2, 3]


def test_nested_columns_have_ids_in_iceberg_files(tmp_path: Path) -> None:
    table = open_table(config(tmp_path, TableFormat.ICEBERG))
    table.commit("q", 0, [stage(table, 0, 2)])
    (file,) = tmp_path.glob("table/data/**/*.parquet")
    (headers,) = (each for each in pq.read_schema(file) if each.name == "headers")
    ids = [headers, headers.type.value_field, *headers.type.value_type]
    assert len({each.metadata[b"PARQUET:field_id"] for each in ids}) == 4
    assert (
        StaticTable.from_metadata(str(tmp_path / "table")).scan().to_arrow()["headers"].to_pylist()
        == [[{"key": "h", "value": b"x"}]] * 2
    )
