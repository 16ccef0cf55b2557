"""A key and a value in one: how Pulsar's schemas of kind KEY_VALUE have them where they are INLINE.

Each is its length, a number of four bytes, and that many bytes; the length is -1 of none. The
definition of such a schema is those of its key and its value in the same form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.pipeline.values.decoding import NULL_SPAN

if TYPE_CHECKING:
    from penstock.pipeline.values.decoding import Values
    from penstock.records.columns import Bytes, Mask, Numbers

_LENGTH_BYTES: Final = 4


class Apart(NamedTuple):
    """Spans of keys and values of the same rows; of null where there was nothing, or no pair."""

    keys: Numbers
    values: Numbers
    broken: Numbers
    """Rows that are no pair."""


def apart(pairs: Values) -> Apart:
    """Take pairs apart."""
    data, spans = pairs
    rows = np.flatnonzero(spans[1] >= 0)
    starts, sizes = spans[:, rows]
    ends = starts + sizes
    key_sizes = _lengths(data, starts, ends)
    key_starts = starts + _LENGTH_BYTES
    key_ends = np.minimum(key_starts + np.maximum(key_sizes, 0), ends)
    value_sizes = _lengths(data, key_ends, ends)
    value_starts = key_ends + _LENGTH_BYTES
    good = (key_sizes >= -1) & (value_starts + np.maximum(value_sizes, 0) == ends)
    parts = ((key_starts, key_sizes), (value_starts, value_sizes))
    keys, values = (_part(*part, good, rows, spans.shape[1]) for part in parts)
    return Apart(keys, values, rows[~good])


def _lengths(data: Bytes, starts: Numbers, ends: Numbers) -> Numbers:
    """Return the lengths that stand at these places, and -2 where there is no room for one."""
    there = ends - starts >= _LENGTH_BYTES
    lengths = np.full(len(starts), -2, np.int64)
    places = starts[there][:, None] + np.arange(_LENGTH_BYTES)
    lengths[there] = np.ascontiguousarray(data[places]).view(">i4")[:, 0]
    return lengths


def _part(starts: Numbers, sizes: Numbers, good: Mask, rows: Numbers, count: int) -> Numbers:
    """Return spans of `count` rows, with these where they are good."""
    spans = np.repeat(NULL_SPAN, count, 1)
    spans[:, rows[good]] = starts[good], sizes[good]
    return spans
