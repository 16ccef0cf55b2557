"""Typed rows as a table has them: the fields of the value as columns, and all else as `_name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.pipeline.values.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

RESERVED: Final = "_penstock_"
"""How columns begin that only steps in between know."""

_VALUE: Final = "value"


def flattened_schema(typed: pa.Schema, path: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of flattened rows; `path` leads to the struct whose fields are meant.

    Raises SchemaError where two would have one name.
    """
    struct = typed.field(_VALUE).type
    for name in path:
        struct = struct.field(name).type
    others = [each.with_name(f"_{each.name}") for each in typed if each.name != _VALUE]
    check_names([each.name for each in struct], [each.name for each in others])
    return pa.schema([*struct, *others])


def check_names(fields: Sequence[str], others: Sequence[str]) -> None:
    """Raise SchemaError where a field of a value would be taken for another column.

    Spark and tables know no upper and lower case.
    """
    taken = {name.lower() for name in others}
    for name in fields:
        if name.lower() in taken or name.lower().startswith(RESERVED):
            raise SchemaError(
                f"values have a field {name}, and so is a column called that the table has anyway: "
                f"leave it out of the schema. Taken are {', '.join(others)} and all that begins "
                f"with {RESERVED}"
            )


def flattened(rows: pa.RecordBatch, path: Sequence[str] = ()) -> pa.RecordBatch:
    """Return rows with the columns of `flattened_schema`; of a null value, all fields are null."""
    struct = rows.column(_VALUE)
    for name in path:
        struct = struct.flatten()[struct.type.get_field_index(name)]
    others = [rows.column(name) for name in rows.schema.names if name != _VALUE]
    schema = flattened_schema(rows.schema, path)
    return pa.RecordBatch.from_arrays([*struct.flatten(), *others], schema=schema)
