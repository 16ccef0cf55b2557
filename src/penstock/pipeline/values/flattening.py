"""Typed rows as a table has them: the fields of the value as columns, and all else as `_name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUE: Final = "value"


def flattened_schema(typed: pa.Schema, path: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of flattened rows; `path` leads to the struct whose fields are meant."""
    struct = typed.field(_VALUE).type
    for name in path:
        struct = struct.field(name).type
    others = [each.with_name(f"_{each.name}") for each in typed if each.name != _VALUE]
    return pa.schema([*struct, *others])


def flattened(rows: pa.RecordBatch, path: Sequence[str] = ()) -> pa.RecordBatch:
    """Return rows with the columns of `flattened_schema`; of a null value, all fields are null."""
    struct = rows.column(_VALUE)
    for name in path:
        struct = struct.flatten()[struct.type.get_field_index(name)]
    others = [rows.column(name) for name in rows.schema.names if name != _VALUE]
    schema = flattened_schema(rows.schema, path)
    return pa.RecordBatch.from_arrays([*struct.flatten(), *others], schema=schema)
