"""From a table's configuration to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.tables.interface import TableError, TableFormat, state_folder
from penstock.pipeline.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.tables.interface import TableConfig
    from penstock.pipeline.tables.table import Table


def format_of(folder: Path) -> TableFormat:
    """Return what the table in a folder is kept as; raises TableError where none is."""
    if (folder / "_delta_log").is_dir():
        return TableFormat.DELTA
    if (folder / "metadata").is_dir():
        return TableFormat.ICEBERG
    if (state_folder(folder) / "commits").is_dir():
        return TableFormat.PARQUET
    raise TableError(f"{folder} has no table: give its folder, or its pipeline's file")


def open_table(config: TableConfig) -> Table:
    """Return the table, which need not exist yet; raises TableError where a library is missing.

    Delta's and Iceberg's libraries are loaded only for their tables.
    """
    match config.format:
        case TableFormat.PARQUET:
            return ParquetTable(config)
        case TableFormat.DELTA:
            from penstock.pipeline.tables.delta import DeltaLakeTable  # noqa: PLC0415

            return DeltaLakeTable(config)
        case TableFormat.ICEBERG:
            from penstock.pipeline.tables.iceberg import IcebergTable  # noqa: PLC0415

            return IcebergTable(config)
