"""From a table's configuration to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.tables.interface import TableError, TableFormat
from penstock.pipeline.tables.parquet import ParquetTable
from penstock.pipeline.tables.places import place_of

if TYPE_CHECKING:
    from penstock.pipeline.tables.interface import TableConfig
    from penstock.pipeline.tables.storage import Folder
    from penstock.pipeline.tables.table import Table


def format_of(location: str) -> TableFormat:
    """Return what the table at a place is kept as; raises TableError where none is."""
    kind = found_format(place_of(location).folder)
    if kind is None:
        raise TableError(f"{location} has no table: give its folder, or its pipeline's file")
    return kind


def found_format(folder: Folder) -> TableFormat | None:
    """Return what the table in a folder is kept as; None where there is none."""
    kinds = {
        "_delta_log": TableFormat.DELTA,
        "metadata": TableFormat.ICEBERG,
        "_penstock/commits": TableFormat.PARQUET,
    }
    return next((kind for name, kind in kinds.items() if folder.has(name)), None)


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
