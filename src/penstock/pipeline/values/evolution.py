"""Which columns follow which: a table's or a stream's from one version of a schema to the next."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import types

from penstock.pipeline.values.errors import SchemaError

_WIDER: Final = (
    (types.is_int8, (pa.int16(), pa.int32(), pa.int64())),
    (types.is_int16, (pa.int32(), pa.int64())),
    (types.is_int32, (pa.int64(), pa.float64())),
    (types.is_float32, (pa.float64(),)),
    (types.is_date32, (pa.timestamp("us"),)),
)
"""As Delta and Iceberg widen types, and no further: nothing is lost by any of these."""


def widened(before: pa.StructType, after: pa.StructType, option: str) -> pa.StructType:
    """Return columns that hold what both do, those of `before` first.

    Raises SchemaError, which names the column, where one has become something else.
    """
    of = _wider(before, after, option, "")
    assert types.is_struct(of)
    return of


def _wider(before: pa.DataType, after: pa.DataType, option: str, path: str) -> pa.DataType:
    if before == after:
        return before
    if types.is_struct(before) and types.is_struct(after):
        return _struct(before, after, option, path)
    if types.is_list(before) and types.is_list(after):
        inner = _wider(before.value_type, after.value_type, option, f"{path}[]")
        return pa.list_(before.value_field.with_type(inner))
    if types.is_map(before) and types.is_map(after) and before.key_type == after.key_type:
        inner = _wider(before.item_type, after.item_type, option, f"{path}{{}}")
        return pa.map_(before.key_field, before.item_field.with_type(inner))
    if _holds(after, before):
        return after
    if _holds(before, after):
        return before
    raise SchemaError(
        f"{option}: column {path} was of type {before} and is of type {after} in the newest "
        "schema, which does not hold all of it: go on with the older schema, or begin a new table "
        "and checkpoint"
    )


def _struct(before: pa.StructType, after: pa.StructType, option: str, path: str) -> pa.StructType:
    fields: dict[str, pa.Field] = {each.name: each for each in before.fields}
    for each in after.fields:
        known = fields.get(each.name)
        if known is None:
            fields[each.name] = each
            continue
        inner = f"{path}.{each.name}" if path else each.name
        fields[each.name] = known.with_type(_wider(known.type, each.type, option, inner))
    return pa.struct(list(fields.values()))


def _holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    if types.is_decimal(wide) and types.is_decimal(narrow):
        more = wide.precision - wide.scale >= narrow.precision - narrow.scale
        return bool(wide.scale >= narrow.scale and more)
    return any(fits(narrow) and wide in wider for fits, wider in _WIDER)
