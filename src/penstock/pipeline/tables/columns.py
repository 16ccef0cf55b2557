"""The columns that a table has now, and rows with them."""

from __future__ import annotations

import pyarrow as pa


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with a schema's columns: those that it lacks are null, narrow ones widened."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def small_types(schema: pa.Schema) -> pa.Schema:
    """Return a schema without Arrow's large types, which are no others in a file."""
    return pa.schema([each.with_type(_small(each.type)) for each in schema])


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_small(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_small(kind.value_type)))
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_small(kind.key_type))
        return pa.map_(key, kind.item_field.with_type(_small(kind.item_type)))
    return kind
