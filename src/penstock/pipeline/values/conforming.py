"""Columns as columns of another type that holds all that they can, and which types those are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructType

from penstock.pipeline.values.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def spark_struct(struct: pa.StructType) -> StructType:
    """Return the columns as Spark has them; raises SchemaError where it has no such type."""
    try:
        of: DataType = from_arrow_type(known_to_spark(struct))
    except Exception as error:
        raise SchemaError(f"Spark has no such type of column: {error}") from None
    assert isinstance(of, StructType)
    return of


def arrow_struct(struct: StructType) -> pa.StructType:
    """Return the columns exactly as Spark checks them in what it is given."""
    return to_arrow_type(struct, timezone="UTC")


def known_to_spark(of: pa.DataType) -> pa.DataType:
    """Return the narrowest type of Spark that holds all of this one."""
    if types.is_struct(of):
        return pa.struct([pa.field(each.name, known_to_spark(each.type)) for each in of.fields])
    if types.is_map(of):
        return pa.map_(known_to_spark(of.key_type), known_to_spark(of.item_type))
    if types.is_list(of):
        return pa.list_(known_to_spark(of.value_type))
    if types.is_uint64(of):
        return pa.decimal128(20, 0)
    if types.is_uint32(of):
        return pa.int64()
    return pa.int64() if types.is_time64(of) else of


def conform(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Return an array as one of another type; fields are found by name, missing ones are null.

    Raises SchemaError where there is no way.
    """
    if array.type == to and not types.is_nested(to):
        return array
    if types.is_struct(to) and types.is_struct(array.type):
        return _struct(array, to)
    if types.is_map(to) and types.is_map(array.type):
        keys, items = conform(array.keys, to.key_type), conform(array.items, to.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=to, mask=_null(array))
    if types.is_list(to) and types.is_list(array.type):
        values = conform(array.values, to.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=to, mask=_null(array))
    try:
        return array.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"a column of type {array.type} can't be one of {to}: {error}") from None


def _struct(array: pa.StructArray, to: pa.StructType) -> pa.StructArray:
    places = {each.name: place for place, each in enumerate(array.type.fields)}
    children = [
        conform(array.field(places[each.name]), each.type)
        if each.name in places
        else pa.nulls(len(array), each.type)
        for each in to.fields
    ]
    if not children:
        return pa.array([{}] * len(array), to, mask=array.is_null().to_numpy(zero_copy_only=False))
    return pa.StructArray.from_arrays(children, fields=to.fields, mask=_null(array))


def _null(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
