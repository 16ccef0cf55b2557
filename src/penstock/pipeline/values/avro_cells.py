"""What the cells of values of Avro say, where the column's type does not say it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from penstock.pipeline.values.avro_schema import MISSING, Avro
from penstock.pipeline.values.errors import SchemaError
from penstock.records.values import node

if TYPE_CHECKING:
    from penstock.pipeline.values.cells import Column, Maker

_DECIMAL_BYTES: Final = 16
_SIZE: Final = (1 << node.OFFSET) - 1


def maker_of(writer: Avro, reader: Avro) -> Maker | None:
    """Return what makes a column of the reader's type of what was written; None for the usual."""
    if writer.kind in ("int", "long"):
        millis = writer.logical.endswith("millis")
        return _milliseconds if millis and reader.logical else _whole
    if writer.kind in ("float", "double"):
        return _reals
    if writer.kind == "enum":
        return _symbols(writer.symbols, _spare_symbol(writer, reader))
    if writer.logical == reader.logical == "decimal":
        return _decimals
    return _bytes if writer.kind in ("bytes", "string", "fixed") else None


def constant(of: Avro, default: Any) -> Maker:
    """Return what makes a column of a field that was not written, of its default."""

    def make(column: Column, to: pa.DataType) -> pa.Array:
        try:
            one = pa.array([_value(of, default)], to)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, AttributeError):
            raise SchemaError(
                f"the default {default!r:.100} of the Avro schema is no {of.kind}"
            ) from None
        # Not pa.repeat, which makes no empty column of lists or maps.
        return one.take(np.zeros(len(column.cells), np.int64))

    return make


def _value(of: Avro, default: Any) -> Any:
    """Return a default, as it stands in the schema's JSON, as Python's value of the column."""
    if default is None:
        return None
    if of.kind in ("bytes", "fixed"):
        raw = default.encode("latin-1")
        return _unscaled(raw, of.scale) if of.logical == "decimal" else raw
    if of.kind in ("array", "map", "record", "union"):
        return _nested(of, default)
    return default * 1000 if of.logical.endswith("millis") else default


def _nested(of: Avro, default: Any) -> Any:
    if of.kind == "union":
        # A default is one of the first branch.
        return _value(of.items[0], default)
    if of.kind == "record":
        given = {each.name: default.get(each.name, each.default) for each in of.fields}
        return {
            each.name: _value(each.type, given[each.name])
            for each in of.fields
            if given[each.name] is not MISSING
        }
    if of.kind == "array":
        return [_value(of.items[0], each) for each in default]
    return [(key, _value(of.items[0], each)) for key, each in default.items()]


def _unscaled(raw: bytes, scale: int) -> Any:
    from decimal import Decimal  # noqa: PLC0415  # only of such defaults

    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)


def _whole(column: Column, to: pa.DataType) -> pa.Array:
    if types.is_floating(to):
        return pa.array(column.cells.astype(to.to_pandas_dtype()), mask=column.null)
    numbers = pa.array(column.cells, mask=column.null)
    if types.is_date32(to):
        return numbers.cast(pa.int32(), safe=False).view(to)
    return numbers.view(to) if types.is_timestamp(to) else numbers.cast(to, safe=False)


def _milliseconds(column: Column, to: pa.DataType) -> pa.Array:
    if not types.is_timestamp(to):
        return _whole(column, to)
    # Times beyond the year 292,278 are none that Spark could have: they come out as the last one.
    limit = np.iinfo(np.int64).max // 1000
    micros = np.clip(column.cells, -limit, limit) * 1000
    return pa.array(micros, mask=column.null).view(to)


def _reals(column: Column, to: pa.DataType) -> pa.Array:
    with np.errstate(all="ignore"):
        numbers = column.cells.view(np.float64).astype(to.to_pandas_dtype())
    return pa.array(numbers, mask=column.null, from_pandas=False)


def _bytes(column: Column, to: pa.DataType) -> pa.Array:
    return column.bytes().view(to)


def _decimals(column: Column, to: pa.DataType) -> pa.Array:
    """Read two's complement of any size, the highest byte first; what is too large is null."""
    sizes = (
        np.where(column.null, 0, column.cells & _SIZE)
        if column.null is not None
        else (column.cells & _SIZE)
    )
    ends = (column.cells >> node.OFFSET) + sizes
    data = column.data if len(column.data) else np.zeros(1, np.uint8)
    first = np.where(sizes > 0, data[np.minimum(ends - sizes, len(data) - 1)], 0)
    sign = np.where(first >= 128, 255, 0).astype(np.uint8)
    out = np.empty((len(sizes), _DECIMAL_BYTES), np.uint8)
    for place in range(_DECIMAL_BYTES):
        there = place < sizes
        at = np.where(there, ends - 1 - place, 0)
        out[:, place] = np.where(there, data[at], sign)
    null = sizes > _DECIMAL_BYTES
    if column.null is not None:
        null = null | column.null
    valid = np.packbits(~null, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(out)]
    return pa.Array.from_buffers(to, len(sizes), buffers)


@cache
def _symbols(symbols: tuple[str, ...], unknown: tuple[frozenset[str], str | None] | None) -> Maker:
    names = [name if unknown is None or name in unknown[0] else unknown[1] for name in symbols]
    dictionary = pa.array(names, pa.string())

    def make(column: Column, to: pa.DataType) -> pa.Array:
        taken = dictionary.take(pa.array(column.cells, mask=column.null))
        return taken.cast(to)

    return make


def _spare_symbol(writer: Avro, reader: Avro) -> tuple[frozenset[str], str | None] | None:
    """Return the symbols that the reader knows, and the one that stands for all others."""
    if reader.kind != "enum" or set(writer.symbols) <= set(reader.symbols):
        return None
    if reader.default is MISSING:
        # The column is text: a symbol that its schema does not have yet is one all the same.
        return None
    return frozenset(reader.symbols), str(reader.default)
