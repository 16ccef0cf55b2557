"""Confluent's wire format: a zero byte, the schema's id in four, and then the value.

Protobuf has the place of the message in its file between them: a count and as many numbers, or one
zero byte for the first message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.records.values.framed import read_ids

if TYPE_CHECKING:
    from penstock.pipeline.values.decoding import Values
    from penstock.records.columns import Mask, Numbers

_LARGEST_INDEX: Final = 64


class Framed(NamedTuple):
    """The schema id of each value, -1 where it is not in the format, and what stands behind."""

    ids: Numbers
    spans: Numbers


def take_ids(values: Values) -> Framed:
    """Read the ids of all values."""
    ids = np.empty(values.spans.shape[1], np.int64)
    behind = np.empty_like(values.spans)
    read_ids(values.data, values.spans, ids, behind)
    return Framed(ids, behind)


def behind_path(values: Values, path: tuple[int, ...]) -> tuple[Numbers, Mask]:
    """Return what stands behind the place of a message, and which values are of that message."""
    starts, sizes = values.spans
    long = bytes([2 * len(path), *(2 * index for index in path if index < _LARGEST_INDEX)])
    matches = _begins(values, long)
    lengths = np.where(matches, len(long), 0)
    if path == (0,):
        short = _begins(values, b"\0")
        lengths = np.where(short, 1, lengths)
        matches |= short
    return np.stack([starts + lengths, sizes - lengths]), matches


def _begins(values: Values, prefix: bytes) -> Mask:
    data, (starts, sizes) = values
    matches: Mask = sizes >= len(prefix)
    if not len(data):
        return np.zeros(len(sizes), np.bool_)
    for place, byte in enumerate(prefix):
        matches &= data[np.where(matches, starts + place, 0)] == byte
    return matches
