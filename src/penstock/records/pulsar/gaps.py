"""Clients get entries without gaps: a message's index in its entry says its offset.

So a batch that has lost records becomes an entry for each run of offsets that follow one another,
and so does an entry in which messages are marked as compacted out (`parts`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.log.header import Magic, build_gap
from penstock.records import field
from penstock.records.decoding import decode
from penstock.records.made import END
from penstock.records.pulsar.parts import parts_of

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Mask, Numbers


def has_marked(batches: Numbers) -> Mask:
    """Return which batches of a table are entries in which messages are marked."""
    counts = batches[field.COUNT]
    marked: Mask = (counts != 0) & (counts <= batches[field.LAST_DELTA])
    marked &= batches[field.MAGIC] == Magic.PULSAR
    return marked


def without_marked(piece: memoryview) -> memoryview:
    """Return what is left of entries in which messages are marked: others, in which none is.

    Raises MalformedBatchError.
    """
    columns = decode(piece, headers=False)
    count = columns.batches.shape[1]
    all_that_are_left = np.ones(len(columns), np.bool_)
    no_horizons = np.full(count, -1, np.int64)
    made = parts_of(columns, np.arange(count), all_that_are_left, no_horizons, marked=False)
    return memoryview(made.data[: made.table[END].max(initial=0)].tobytes() + gap_behind(columns))


def split_at_gaps(columns: Columns) -> Columns:
    """Return the columns with a batch for each run of offsets that follow one another."""
    batches, offsets = columns.batches, columns.offsets
    counts = batches[field.RECORDS]
    if not len(offsets) or (counts == batches[field.LAST_DELTA] + 1).all():
        return columns
    of_row = np.repeat(np.arange(batches.shape[1]), counts)
    begins = np.ones(len(offsets), np.bool_)
    begins[1:] = (np.diff(offsets) != 1) | (np.diff(of_row) != 0)
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, len(offsets)))
    table = np.ascontiguousarray(batches[:, of_row[starts]])
    table[field.BASE_OFFSET] = offsets[starts]
    table[field.LAST_DELTA] = sizes - 1
    table[field.COUNT] = table[field.RECORDS] = sizes
    table[field.FIRST_RECORD] = starts
    return replace(columns, batches=table)


def gap_behind(columns: Columns) -> bytes:
    """Return a batch without records where the last batch ends behind the last record of all.

    Else a reader would come to the batch of that record again and again.
    """
    batches = columns.batches
    end = int(batches[[field.BASE_OFFSET, field.LAST_DELTA], -1].sum()) + 1
    reached = int(columns.offsets[-1]) + 1 if len(columns) else end
    return bytes(build_gap(Magic.PULSAR, reached, end, 0)) if reached < end else b""
