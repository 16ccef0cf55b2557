"""Which snapshots an Iceberg table is made of: its current one, and those before that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def current_snapshots(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and those before it, as far as they are kept."""
    kept = {each.snapshot_id: each for each in table.snapshots()}
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else kept.get(parent)


def is_held(table: Table, name: str, number: str) -> bool:
    """Whether the snapshot that a property names is the current one or before it.

    The property `number` says its place in the order of all that there were, so that one which
    expired is known to be none of these where they go back further. Of one whose place is not
    known, and which expired, it is taken that it is.
    """
    newest = table.properties.get(name)
    if newest is None:
        return True
    oldest = 0
    for each in current_snapshots(table):
        oldest = each.sequence_number or 0
        if each.snapshot_id == int(newest):
            return True
    sequence = int(table.properties.get(number, 0))
    return oldest > sequence if sequence else table.snapshot_by_id(int(newest)) is None
