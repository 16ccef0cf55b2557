"""Columns that nest others, which get more fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.tables.interface import Merged, StagedFile, TableConfig, TableError
from penstock.pipeline.tables.interface import TableFormat as Format
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.table import Table
from table_readers import ROWS, rows_seen

OLD = pa.struct([pa.field("a", pa.int32())])
NEW = pa.struct([pa.field("b", pa.string()), pa.field("a", pa.int32())])
KEYED = [(Format.PARQUET, ())] + [
    (kind, keys) for kind in (Format.DELTA, Format.ICEBERG) for keys in ((), ("offset",))
]


def schema(inner: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("offset", pa.int64()),
            pa.field("one", inner),
            pa.field("many", pa.list_(inner)),
            pa.field("named", pa.map_(pa.string(), inner)),
        ]
    )


def row(offset: int, value: Any) -> dict[str, Any]:
    return {"offset": offset, "one": value, "many": [value, None], "named": [("k", value)]}


def give(table: Table, batch: int, inner: pa.DataType, rows: list[dict[str, Any]]) -> None:
    columns = schema(inner)
    stager = table.prepare(columns)
    pieces = stager.write([pa.RecordBatch.from_pylist(rows, columns)], "q", batch)
    files = [
        StagedFile(p.staged, "a", 0, batch, batch + 1, p.rows, p.size, n, p.values, p.footer)
        for n, p in enumerate(pieces)
    ]
    table.commit("q", batch, files)


def holds(table: Table, wanted: list[dict[str, Any]]) -> None:
    # Of a plain folder the reader has to be asked for the columns of all files.
    kind = table.config.format
    for reader in ROWS[kind][:1] if kind is Format.PARQUET else ROWS[kind]:
        for found, each in zip(
            rows_seen(reader, table.config, list(each_name())), wanted, strict=True
        ):
            assert plain(found) == plain(each), reader


def each_name() -> list[str]:
    return schema(OLD).names


def plain(each: dict[str, Any]) -> dict[str, Any]:
    """Return a row with a map in one of the forms that readers have for it."""
    pairs = [
        tuple(pair.values()) if isinstance(pair, dict) else tuple(pair) for pair in each["named"]
    ]
    return each | {"named": pairs}


@pytest.mark.parametrize(("kind", "keys"), KEYED)
def test_a_new_field_is_null_in_older_rows(
    tmp_path: Path, kind: Format, keys: tuple[str, ...]
) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind, keys=keys))
    give(table, 0, OLD, [row(0, {"a": 1}), row(1, None)])
    give(table, 1, NEW, [row(2, {"a": 2, "b": "x"}), row(3, {"a": None, "b": "y"})])
    give(table, 2, OLD, [row(4, {"a": 3})])
    if keys:
        give(table, 3, OLD, [row(0, {"a": 4})])
    wanted = [
        row(0, {"a": 4 if keys else 1, "b": None}),
        row(1, None),
        row(2, {"a": 2, "b": "x"}),
        row(3, {"a": None, "b": "y"}),
        row(4, {"a": 3, "b": None}),
    ]
    holds(table, wanted)
    if kind is not Format.PARQUET:
        assert open_table(TableConfig(str(tmp_path / "t"), kind)).compact() != Merged(0, 0)
        holds(table, wanted)


def test_a_nested_field_is_widened_in_iceberg(tmp_path: Path) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), Format.ICEBERG))
    give(table, 0, OLD, [row(0, {"a": 1})])
    give(table, 1, pa.struct([("a", pa.int64())]), [row(1, {"a": 1 << 40})])
    give(table, 2, OLD, [row(2, {"a": 2})])
    holds(table, [row(0, {"a": 1}), row(1, {"a": 1 << 40}), row(2, {"a": 2})])


@pytest.mark.parametrize("kind", list(Format))
def test_a_field_of_another_type_is_refused_by_its_path(tmp_path: Path, kind: Format) -> None:
    table = open_table(TableConfig(str(tmp_path / "t"), kind))
    give(table, 0, OLD, [row(0, {"a": 1})])
    with pytest.raises(TableError, match=r"many.element.a is int32 in the table and string in"):
        table.prepare(schema(pa.struct([("a", pa.string())])))
    if kind is not Format.ICEBERG:
        wide = schema(pa.struct([("a", pa.int64())]))
        with pytest.raises(TableError, match=r"named.value.a is int32 .*; Iceberg's columns can"):
            table.prepare(wide)
    holds(table, [row(0, {"a": 1})])


def test_a_field_that_iceberg_takes_for_another_one_is_refused_in_words(tmp_path: Path) -> None:
    """Of a path within a map it leaves `value` out: `named.value.a` would be two fields."""
    table = open_table(TableConfig(str(tmp_path / "table"), Format.ICEBERG))
    nested = pa.struct([pa.field("value", OLD)])
    give(table, 0, nested, [row(0, {"value": {"a": 1}})])
    more = pa.struct([pa.field("value", OLD), pa.field("a", pa.int32())])
    with pytest.raises(TableError, match=r"can't tell a new field .*value\.a\): name it otherwise"):
        table.prepare(schema(more))
