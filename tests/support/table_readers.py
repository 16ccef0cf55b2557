"""Engines that read tables, each in its own way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
from pyiceberg.table import StaticTable

from penstock.pipeline.tables.interface import TableConfig, TableFormat

Reader = Callable[[str], Any]
"""Takes a table's folder and returns its offsets."""


def _folder_by_duckdb(folder: str) -> Any:
    files = duckdb.sql(f"select \"offset\" from '{folder}/**/part-*.parquet'")
    return [offset for (offset,) in files.fetchall()]


def _folder_by_polars(folder: str) -> Any:
    return pl.scan_parquet(f"{folder}/**/part-*.parquet").select("offset").collect()["offset"]


def _delta_by_duckdb(folder: str) -> Any:
    rows = deltalake.DeltaTable(folder).to_pyarrow_dataset()  # noqa: F841  # by its name
    return [offset for (offset,) in duckdb.sql('select "offset" from rows').fetchall()]


def _delta_by_polars(folder: str) -> Any:
    return pl.scan_delta(folder).select("offset").collect()["offset"]


def _iceberg_by_duckdb(folder: str) -> Any:
    connection = StaticTable.from_metadata(folder).scan().to_duckdb("rows")
    return [offset for (offset,) in connection.sql('select "offset" from rows').fetchall()]


def _iceberg_by_polars(folder: str) -> Any:
    table = StaticTable.from_metadata(folder)
    return pl.scan_iceberg(table).select("offset").collect()["offset"]


READERS: dict[TableFormat, list[Reader]] = {
    TableFormat.PARQUET: [_folder_by_duckdb, _folder_by_polars],
    TableFormat.DELTA: [_delta_by_duckdb, _delta_by_polars],
    TableFormat.ICEBERG: [_iceberg_by_duckdb, _iceberg_by_polars],
}


def offsets_seen(reader: Reader, config: TableConfig) -> list[int]:
    return sorted(reader(str(Path(config.location))))


def _folder_rows_by_duckdb(folder: str) -> Any:
    return duckdb.sql(
        f"select * from read_parquet('{folder}/**/part-*.parquet', union_by_name=true)"
    ).to_arrow_table()


def _folder_rows_by_polars(folder: str) -> Any:
    return pl.scan_parquet(f"{folder}/**/part-*.parquet").collect().to_arrow()


def _folder_rows_by_arrow(folder: str) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(folder, partitioning=None).to_table()


def _delta_rows(folder: str) -> Any:
    return deltalake.DeltaTable(folder).to_pyarrow_table()


def _delta_rows_by_polars(folder: str) -> Any:
    return pl.scan_delta(folder).collect().to_arrow()


def _iceberg_rows(folder: str) -> Any:
    return StaticTable.from_metadata(folder).scan().to_arrow()


def _iceberg_rows_by_polars(folder: str) -> Any:
    return pl.scan_iceberg(StaticTable.from_metadata(folder)).collect().to_arrow()


ROWS = {
    TableFormat.PARQUET: [_folder_rows_by_duckdb, _folder_rows_by_polars, _folder_rows_by_arrow],
    TableFormat.DELTA: [_delta_rows, _delta_rows_by_polars],
    TableFormat.ICEBERG: [_iceberg_rows, _iceberg_rows_by_polars],
}


def rows_seen(reader: Reader, config: TableConfig, names: list[str]) -> list[dict[str, Any]]:
    rows = reader(str(Path(config.location))).select(names).to_pylist()
    return sorted(rows, key=lambda row: row["offset"])
