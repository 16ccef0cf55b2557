"""From a table's configuration to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from penstock.pipeline.tables.interface import Table, TableConfig


def open_table(config: TableConfig) -> Table:
    """Return the table, which need not exist yet."""
    return ParquetTable(config)
