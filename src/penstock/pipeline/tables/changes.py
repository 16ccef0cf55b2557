"""Rows that change others: the last one of a key stays, or none where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.tables.columns import fitted
from penstock.pipeline.tables.interface import ChangeForm, TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

DELETED: Final = "_penstock_deleted"
"""The column of staged changes that says which rows take their key away."""

_TAKEN: Final = ("c", "r", "u", "d")
"""Debezium's words for a row that is made, read, changed and deleted."""
_LEFT_OUT: Final = ("m",)
"""A message of the database's own log, which is no row."""


def columns_of(schema: pa.Schema, form: ChangeForm) -> pa.Schema:
    """Return the table's columns, of which rows of this schema are changes. Raises TableError."""
    if form is ChangeForm.ROWS:
        return pa.schema([field for field in schema if field.name != DELETED])
    missing = [name for name in ("op", "before", "after") if name not in schema.names]
    if missing or not pa.types.is_struct(schema.field("after").type):
        raise TableError(
            "changes of the form debezium have the columns op, before and after (a struct); these "
            f"have {', '.join(schema.names)}"
        )
    return pa.schema(list(schema.field("after").type))


def check_keys(keys: Sequence[str], columns: pa.Schema) -> None:
    """Raise TableError where a key is no column, or none that can be one."""
    for key in keys:
        if key not in columns.names:
            raise TableError(f"key {key!r} is none of the columns {', '.join(columns.names)}")
        kind = columns.field(key).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise TableError(f"key {key!r} can't be of type {kind}")


def staged_schema(columns: pa.Schema) -> pa.Schema:
    return columns.append(pa.field(DELETED, pa.bool_()))


def as_changes(rows: pa.RecordBatch, form: ChangeForm, keys: Sequence[str]) -> pa.RecordBatch:
    """Return rows with the table's columns and `DELETED`, in the order in which they count.

    Raises TableError where a row says something that a table can't follow.
    """
    if form is ChangeForm.DEBEZIUM:
        return _of_envelopes(rows, keys)
    if DELETED in rows.schema.names:
        return rows
    if "value" in rows.schema.names:
        return rows.append_column(DELETED, pc.is_null(rows.column("value")))
    return rows.append_column(DELETED, pa.repeat(pa.scalar(value=False), rows.num_rows))


def _of_envelopes(rows: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    operations = rows.column("op")
    known = pc.or_(_one_of(operations, (*_TAKEN, *_LEFT_OUT)), pc.is_null(operations))
    unknown = pc.unique(operations.filter(pc.invert(known)))
    if len(unknown):
        raise TableError(
            f"a change of the kind {unknown[0].as_py()!r} can't be followed by a table, only "
            f"{', '.join(_TAKEN)}"
        )
    # A record without an operation is the tombstone that follows each deletion.
    rows = rows.filter(_one_of(operations, _TAKEN))
    deleted = pc.equal(rows.column("op"), "d")
    if pc.any(pc.and_(deleted, pc.is_null(rows.column("before")))).as_py():
        raise TableError(
            "changes of the kind 'd' say nothing of the row that they delete: have the database "
            "send the row as it was (PostgreSQL: REPLICA IDENTITY)"
        )
    before, after = _inside(rows, "before"), _inside(rows, "after")
    columns = [
        _chosen(deleted, old, new) for old, new in zip(before.columns, after.columns, strict=True)
    ]
    changed = pa.RecordBatch.from_arrays([*columns, deleted], schema=staged_schema(after.schema))
    moved = _moved(rows, before, after, keys)
    if not len(moved):
        return changed
    gone = before.take(moved)
    gone = gone.append_column(DELETED, pa.repeat(pa.scalar(value=True), len(moved)))
    places = np.concatenate([moved.to_numpy() * 2, np.arange(changed.num_rows) * 2 + 1])
    both = pa.Table.from_batches([fitted(gone, changed.schema), changed])
    ordered = both.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks()
    return ordered.to_batches()[0]


def _one_of(column: pa.Array, words: Sequence[str]) -> pa.Array:
    return pc.is_in(column, value_set=pa.array(words, pa.string()))


def _inside(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return a struct's fields as columns, null where the struct is."""
    column = rows.column(name)
    return pa.RecordBatch.from_arrays(column.flatten(), schema=pa.schema(list(column.type)))


def _chosen(first: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """Return the one where `first` is true, else the other; of any type, nested ones too."""
    places = np.arange(len(first))
    places = np.where(first.to_numpy(zero_copy_only=False), places, places + len(first))
    return pa.concat_arrays([one.cast(other.type), other]).take(pa.array(places))


def _moved(
    rows: pa.RecordBatch, before: pa.RecordBatch, after: pa.RecordBatch, keys: Sequence[str]
) -> pa.Array:
    """Return the places of rows whose key changed, so that the row of the old one has to go."""
    there = pc.and_(pc.equal(rows.column("op"), "u"), pc.is_valid(rows.column("before")))
    same = pa.array(np.ones(rows.num_rows, bool))
    for key in keys:
        equal = pc.fill_null(pc.equal(before.column(key), after.column(key)), fill_value=False)
        same = pc.and_(same, equal)
    return pa.array(np.flatnonzero(pc.and_not(there, same).to_numpy(zero_copy_only=False)))


def last_of_each_key(rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Return for each row whether it is the last of its key. Raises TableError for a null key."""
    for key in keys:
        if rows.column(key).null_count:
            raise TableError(
                f"{rows.column(key).null_count} changes have no {key}, which is their key: leave "
                "them out, or choose other keys"
            )
    numbered = rows.select(list(keys)).append_column("_row", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(list(keys), use_threads=False).aggregate([("_row", "max")])
    chosen = np.zeros(rows.num_rows, bool)
    chosen[last.column("_row_max").to_numpy()] = True
    return pa.array(chosen)
