"""Rows with the columns that a table has now."""

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
