"""Which files of a table hold rows of changed keys, and what stays of them.

A file that holds none is not looked at twice: its footer says between which keys it lies, and then
its column of keys is read. The others are written again without those rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.pipeline.tables.changes import DELETED, last_of_each_key
from penstock.pipeline.tables.merging import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.pipeline.tables.storage import Folder


class KeyRange(NamedTuple):
    """Between which values the first key of a file's rows lies, both included."""

    lowest: Any
    highest: Any


class ChangedKeys:
    """The changes of one batch."""

    def __init__(self, folder: Folder, names: Sequence[str], keys: Sequence[str]) -> None:
        """Read the keys of staged changes, in the order in which they count. Raises TableError."""
        self._folder = folder
        self._names = names
        self._keys = list(keys)
        rows = pa.concat_tables([_columns(folder, name, self._keys) for name in names])
        self._rows = rows
        self._last = last_of_each_key(rows, keys)
        self._changed = rows.filter(self._last)
        self._sorted = sorted(pc.unique(self._changed.column(self._keys[0])).to_pylist())

    def may_be_in(self, keys: KeyRange | None) -> bool:
        """Whether a file with such keys can hold one that changed; None where nothing is known."""
        if keys is None:
            return True
        first = bisect_left(self._sorted, keys.lowest)
        return first < bisect_right(self._sorted, keys.highest)

    def kept(self, folder: Folder, name: str) -> pa.Array | None:
        """Return which rows of a file stay, or None where all do."""
        rows = self.keys_in(folder, name)
        numbered = rows.append_column("_row", pa.array(np.arange(rows.num_rows)))
        gone = numbered.join(
            self._changed, self._keys, join_type="left semi", use_threads=False
        ).column("_row")
        if not len(gone):
            return None
        kept = np.ones(rows.num_rows, bool)
        kept[gone.to_numpy()] = False
        return pa.array(kept)

    def leave_out(self, keys: pa.Table) -> None:
        """Change nothing of some keys."""
        numbered = self._rows.append_column("_row", pa.array(np.arange(self._rows.num_rows)))
        keys = keys.select(self._keys).cast(self._changed.schema)
        out = numbered.join(keys, self._keys, join_type="left semi", use_threads=False)
        chosen = self._last.to_numpy(zero_copy_only=False).copy()
        chosen[out.column("_row").to_numpy()] = False
        self._last = pa.array(chosen)

    def keys_in(self, folder: Folder, name: str) -> pa.Table:
        """Return the keys of the rows of a file, which may be older than their types."""
        return _columns(folder, name, self._keys).cast(self._changed.schema)

    def deleted(self) -> pa.Table:
        """Return the keys whose last row takes them away."""
        marks = [_columns(self._folder, name, [*self._keys, DELETED]) for name in self._names]
        last = pa.concat_tables(marks).filter(self._last)
        return last.filter(last.column(DELETED)).drop_columns(DELETED)

    def new_rows(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the last row of each key, of those that stay."""
        staged = schema.append(pa.field(DELETED, pa.bool_()))
        for rows in filtered(rows_of(self._folder, self._names, staged), self._last):
            yield rows.filter(pc.invert(rows.column(DELETED))).drop_columns(DELETED)


def filtered(batches: Iterator[pa.RecordBatch], kept: pa.Array) -> Iterator[pa.RecordBatch]:
    """Yield those of all rows that stay."""
    position = 0
    for rows in batches:
        yield rows.filter(kept.slice(position, rows.num_rows))
        position += rows.num_rows


def key_range(folder: Folder, name: str, key: str) -> KeyRange | None:
    """Return what the footer of a file says of a key."""
    with folder.reading(name) as source:
        footer = pq.read_metadata(source)
    index = footer.schema.to_arrow_schema().get_field_index(key)
    if index < 0 or any("." in footer.schema.column(i).path for i in range(index + 1)):
        return None
    found = [
        footer.row_group(each).column(index).statistics for each in range(footer.num_row_groups)
    ]
    if not found or any(each is None or not each.has_min_max for each in found):
        return None
    return KeyRange(min(each.min for each in found), max(each.max for each in found))


def _columns(folder: Folder, name: str, columns: Sequence[str]) -> pa.Table:
    with folder.reading(name) as source:
        return pq.read_table(source, columns=list(columns))
