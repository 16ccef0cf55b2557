"""A key and a value in one: how Pulsar's schemas of kind KEY_VALUE have them where they are INLINE.

Each is its length, a number of four bytes, and that many bytes; the length is -1 of none. The
definition of such a schema is those of its key and its value in the same form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.pipeline.values.decoding import values_of
from penstock.records.arrow import gather

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Numbers

_LENGTH_BYTES: Final = 4


class Apart(NamedTuple):
    """Keys and values of the same rows; both are null where there was nothing, or no pair."""

    keys: pa.Array
    values: pa.Array
    broken: Numbers
    """Rows that are no pair."""


def apart(pairs: pa.Array) -> Apart:
    """Take a binary array of pairs apart."""
    rows = np.flatnonzero(pairs.is_valid().to_numpy(zero_copy_only=False))
    data, (starts, sizes) = values_of(pairs.drop_null())
    ends = starts + sizes
    key_sizes = _lengths(data, starts, ends)
    key_starts = starts + _LENGTH_BYTES
    key_ends = np.minimum(key_starts + np.maximum(key_sizes, 0), ends)
    value_sizes = _lengths(data, key_ends, ends)
    value_starts = key_ends + _LENGTH_BYTES
    good = (key_sizes >= -1) & (value_starts + np.maximum(value_sizes, 0) == ends)
    parts = ((key_starts, key_sizes), (value_starts, value_sizes))
    keys, values = (_part(data, *part, good, rows, len(pairs)) for part in parts)
    return Apart(keys, values, rows[~good])


def _lengths(data: Bytes, starts: Numbers, ends: Numbers) -> Numbers:
    """Return the lengths that stand at these places, and -2 where there is no room for one."""
    there = ends - starts >= _LENGTH_BYTES
    lengths = np.full(len(starts), -2, np.int64)
    places = starts[there][:, None] + np.arange(_LENGTH_BYTES)
    lengths[there] = np.ascontiguousarray(data[places]).view(">i4")[:, 0]
    return lengths


def _part(
    data: Bytes, starts: Numbers, sizes: Numbers, good: Numbers, rows: Numbers, count: int
) -> pa.Array:
    """Return a binary array of `count` rows, with these spans where they are good."""
    spans = np.full((2, count), -1, np.int64)
    spans[:, rows[good]] = starts[good], sizes[good]
    return gather(data, *spans)
