"""Columns as Arrow arrays, for Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.records import field
from penstock.records.errors import OverLimitError
from penstock.records.kernels.fields import (
    SPARE,
    copy_fields,
    copy_spans,
    lay_out,
    lay_out_spans,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from penstock.records.columns import Bytes, Columns, Mask, Numbers

_OFFSET_MAX: Final = 2**31 - 1
"""Arrow's binary arrays count their bytes in 32 bits."""

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def to_arrow(columns: Columns, names: Container[str]) -> dict[str, pa.Array]:
    """Return those that are named of key, value, offset, timestamp, timestampType and headers.

    The arrays own their bytes. A time that the producer did not give is null. Bytes of a header's
    name that are not UTF-8 are replaced, for Arrow has no such text.
    """
    assert len(columns.data) <= _OFFSET_MAX, "a run of batches stays far below 2 GiB"
    return {name: make(columns) for name, make in _ARRAYS.items() if name in names}


def _keys(columns: Columns) -> pa.Array:
    records = columns.records
    return gather(columns.data, records[field.KEY_START], records[field.KEY_SIZE])


def _values(columns: Columns) -> pa.Array:
    records = columns.records
    return gather(columns.data, records[field.VALUE_START], records[field.VALUE_SIZE])


def _offsets(columns: Columns) -> pa.Array:
    return pa.array(columns.offsets)


def _times(columns: Columns) -> pa.Array:
    microseconds = columns.timestamps
    unknown = microseconds < 0
    return pa.array(microseconds, mask=unknown if unknown.any() else None).cast(TIMESTAMP)


def _time_types(columns: Columns) -> pa.Array:
    return pa.array(columns.timestamp_types.astype(np.int32))


def _headers(columns: Columns) -> pa.Array:
    table = columns.headers
    data = columns.header_data
    names = _text(gather(data, table[field.NAME_START], table[field.NAME_SIZE]))
    values = gather(data, table[field.CONTENT_START], table[field.CONTENT_SIZE])
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(columns.header_start.astype(np.int32), pairs, type=HEADERS)


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [
            None if name is None else name.decode(errors="replace") for name in names.to_pylist()
        ]
        return pa.array(texts, pa.string())


def gather(data: Bytes, starts: Numbers, sizes: Numbers) -> pa.Array:
    """Return the bytes at these places as a binary array of its own; a size below 0 is null.

    Raises OverLimitError where they lie over one another and are more than an array holds.
    """
    ends, edges = _room(4 * len(sizes))
    content, out = _content(lay_out(sizes, edges))
    copy_fields(data, starts, sizes, out)
    null = None if sizes.min(initial=0) >= 0 else sizes < 0
    return _binary(len(sizes), null, ends, content)


def gather_spans(data: Bytes, spans: Numbers, valid: Mask, null: Mask | None) -> pa.Array:
    """Return the bytes of spans (`kernels.fields`) as `gather` does.

    `null` is what is not `valid`, or None where all is.
    """
    ends, edges = _room(4 * len(spans))
    content, out = _content(lay_out_spans(spans, valid, edges))
    copy_spans(data, spans, valid, out)
    return _binary(len(spans), null, ends, content)


def _room(size: int) -> tuple[pa.Buffer, Bytes]:
    """Return room for so many ends behind the first, which is 0, and what is to be filled of it."""
    # Of Arrow's pool, whose pages are used again.
    buffer = pa.allocate_buffer(4 + size)
    edges = np.frombuffer(buffer, np.uint8)
    edges[:4] = 0
    return buffer, edges[4:]


def _content(size: int) -> tuple[pa.Buffer, Bytes]:
    if size > _OFFSET_MAX:
        raise OverLimitError(f"{size} bytes in one column of a run of batches")
    buffer = pa.allocate_buffer(size + SPARE)
    return buffer.slice(0, size), np.frombuffer(buffer, np.uint8)


def _binary(count: int, null: Mask | None, ends: pa.Buffer, content: pa.Buffer) -> pa.Array:
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [valid, ends, content])


_ARRAYS: Final[dict[str, Callable[[Columns], pa.Array]]] = {
    "key": _keys,
    "value": _values,
    "offset": _offsets,
    "timestamp": _times,
    "timestampType": _time_types,
    "headers": _headers,
}
