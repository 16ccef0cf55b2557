"""Another engine that makes an older version of a table the newest one."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from penstock.pipeline.tables.interface import TableFormat


def take_back(table: Path, kind: TableFormat, batch: int) -> None:
    """Have a table as it was when a batch of its pipeline had been committed."""
    if kind is TableFormat.DELTA:
        opened = DeltaTable(table)
        history = opened.history()
        opened.restore(next(c["version"] for c in history if c.get("penstock.batch") == batch))
        return
    loaded = _loaded(table)
    snapshots = {
        each.summary["penstock.batch"]: each.snapshot_id
        for each in loaded.snapshots()
        if each.summary is not None and each.summary.get("penstock.batch")
    }
    # Also forwards again, for which there is `set_current_snapshot`.
    loaded.manage_snapshots().set_current_snapshot(snapshots[str(batch)]).commit()


def expire_newer(table: Path) -> None:
    """Have an Iceberg table forget what came after its current snapshot."""
    loaded = _loaded(table)
    current = loaded.current_snapshot()
    assert current is not None
    newer = [
        each.snapshot_id
        for each in loaded.snapshots()
        if (each.sequence_number or 0) > (current.sequence_number or 0)
    ]
    assert newer
    loaded.maintenance.expire_snapshots().by_ids(newer).commit()


def _loaded(table: Path) -> Table:
    properties = {"uri": f"sqlite:///{table}/_penstock/catalog.db", "warehouse": str(table)}
    return load_catalog("penstock", type="sql", **properties).load_table(("default", table.name))
