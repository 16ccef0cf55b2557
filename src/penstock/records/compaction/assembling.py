"""What is left of a log put together: the batches that stay and those that were made anew, in their
order. Where something goes between them is one batch without records: offsets have no gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import HEADER_SIZE, NO_TIMESTAMP, PREFIX_SIZE, Magic, build_gap
from penstock.records import field
from penstock.records.compaction.choosing import CHANGES, GOES, IS_EMPTIED, STAYS
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_big, store_big
from penstock.records.made import (
    BATCH,
    END,
    EPOCH_AT,
    FIRST_OFFSET,
    LAST_OFFSET,
    LENGTH_AT,
    MAX_TIMESTAMP,
    POSITION,
    PRODUCER_AT,
    PRODUCER_SIZE,
    seal,
    write_header,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.records.columns import Bytes, Numbers
    from penstock.records.made import Made
    from penstock.session import Buffer

# How far it has come.
_GAP_START: Final = 0
"""What was left out since the last batch: from this offset up to the next one, if they differ."""
_GAP_END: Final = 1
_GAP_EPOCH: Final = 2
"""A gap has one leader epoch, which consumers ask for (KIP-320)."""
_SIZE: Final = 3
"""Bytes of this run so far."""
_COUNT: Final = 4
_STATE_FIELDS: Final = 5

# Of a batch that was put there.
_PLACE: Final = 0
_LAST: Final = 1
_TIME: Final = 2
"""The highest up to it."""
_FIELDS: Final = 3


class Cleaned(NamedTuple):
    """Batches that follow one another, as `Rewriting.write` takes them."""

    data: Buffer
    positions: Sequence[int]
    last_offsets: Sequence[int]
    latest: Sequence[int]


class Assembly:
    """Takes one run after another; what lies between two of them may become one gap."""

    def __init__(self, last_batches: Numbers) -> None:
        self._last_batches = last_batches
        self._state = np.zeros(_STATE_FIELDS, np.int64)

    def add(self, stored: Bytes, batches: Numbers, fates: Numbers, made: Made) -> Cleaned | None:
        """Return what is left of a run, as far as it is known before what lies behind it.

        `made` is what the batches became that change.
        """
        is_last = np.isin(batches[field.BASE_OFFSET], self._last_batches)
        most_empty = 2 * np.count_nonzero(fates != STAYS) + made.table.shape[1] + 1
        out = np.empty(len(stored) + len(made.data) + HEADER_SIZE * most_empty, np.uint8)
        put = np.empty((_FIELDS, batches.shape[1] + made.table.shape[1] + most_empty), np.int64)
        self._state[[_SIZE, _COUNT]] = 0
        assemble(stored, batches, fates, is_last, made.data, made.table, self._state, out, put)
        size, count = self._state[[_SIZE, _COUNT]].tolist()
        return Cleaned(out[:size].data, *(row[:count].data for row in put)) if count else None

    def end(self) -> Cleaned | None:
        """Return what is left behind all that was returned: a new segment begins."""
        start, end, leader_epoch = self._state[[_GAP_START, _GAP_END, _GAP_EPOCH]].tolist()
        if start == end:
            return None
        self._state[_GAP_START] = end
        gap = build_gap(Magic.KAFKA, start, end, leader_epoch)
        return Cleaned(gap, [0], [end - 1], [NO_TIMESTAMP])


@helper
def _note(state: NumbersOut, put: TableOut, size: int, last: int, time: int) -> None:
    """Say what was written behind the batches before."""
    count = state[_COUNT]
    put[_PLACE, count] = state[_SIZE]
    put[_LAST, count] = last
    put[_TIME, count] = max(time, put[_TIME, count - 1]) if count else time
    state[_SIZE] += size
    state[_COUNT] = count + 1


@helper
def _close_gap(state: NumbersOut, out: BytesOut, put: TableOut) -> None:
    """Write the batch in the place of what was left out, as `penstock.log.header.build_gap`."""
    if state[_GAP_START] == state[_GAP_END]:
        return
    position, last = state[_SIZE], state[_GAP_END] - 1
    none = int64(NO_TIMESTAMP)
    end = write_header(out, position, Magic.KAFKA, 0, none, none, state[_GAP_START], last, 0)
    store_big(out, position + EPOCH_AT, 4, state[_GAP_EPOCH])
    for index in range(PRODUCER_SIZE):
        out[position + PRODUCER_AT + index] = 0xFF
    seal(out, position, end)
    _note(state, put, HEADER_SIZE, last, none)
    state[_GAP_START] = state[_GAP_END]


@helper
def _leave_out(
    state: NumbersOut, out: BytesOut, put: TableOut, start: int, end: int, epoch: int
) -> None:
    """Leave out the offsets from one up to another, behind what was left out before."""
    if start == end:
        return
    if state[_GAP_START] != state[_GAP_END] and state[_GAP_EPOCH] != epoch:
        _close_gap(state, out, put)
    if state[_GAP_START] == state[_GAP_END]:
        state[_GAP_START] = start
        state[_GAP_EPOCH] = epoch
    state[_GAP_END] = end


@helper
def _empty(
    state: NumbersOut, out: BytesOut, put: TableOut, data: BytesIn, source: int, last: int
) -> None:
    """Write a batch without records that says which sequence numbers its producer has used."""
    _close_gap(state, out, put)
    position = state[_SIZE]
    copy_bytes(out, position, data, source, HEADER_SIZE)
    none = int64(NO_TIMESTAMP)
    first = load_big(data, source, 8)
    end = write_header(out, position, Magic.KAFKA, 0, none, none, first, last, 0)
    seal(out, position, end)
    _note(state, put, HEADER_SIZE, last, none)


@helper
def _copy(
    state: NumbersOut, out: BytesOut, put: TableOut, data: BytesIn, start: int, end: int,
    last: int, time: int,
) -> None:  # fmt: skip
    """Put a batch there as it is."""
    _close_gap(state, out, put)
    copy_bytes(out, state[_SIZE], data, start, end - start)
    _note(state, put, end - start, last, time)


@kernel
def assemble(
    stored: BytesIn, batches: TableIn, fates: NumbersIn, is_last: MaskIn, made_data: BytesIn,
    made: TableIn, state: NumbersOut, out: BytesOut, put: TableOut,
) -> None:  # fmt: skip
    """Write what is left of all batches, and say where it is. Of those whose producers are known by
    them (`is_last`) something stays in their place.
    """
    following = int64(0)
    for batch in range(batches.shape[1]):
        fate = fates[batch]
        source = batches[field.POSITION, batch]
        first = batches[field.BASE_OFFSET, batch]
        last = first + batches[field.LAST_DELTA, batch]
        epoch = load_big(stored, source + EPOCH_AT, 4)
        if fate == STAYS:
            end = source + load_big(stored, source + LENGTH_AT, 4) + PREFIX_SIZE
            time = batches[field.MAX_TIMESTAMP, batch]
            _copy(state, out, put, stored, source, end, last, time)
        elif fate == GOES:
            _leave_out(state, out, put, first, last + 1, epoch)
        elif fate == IS_EMPTIED:
            _empty(state, out, put, stored, source, last)
        elif fate == CHANGES:
            begin = made[FIRST_OFFSET, following]
            if is_last[batch] and first < begin:
                _empty(state, out, put, stored, source, begin - 1)
                first = begin
            while following < made.shape[1] and made[BATCH, following] == batch:
                _leave_out(state, out, put, first, made[FIRST_OFFSET, following], epoch)
                start, end = made[POSITION, following], made[END, following]
                first = made[LAST_OFFSET, following] + 1
                time = made[MAX_TIMESTAMP, following]
                _copy(state, out, put, made_data, start, end, first - 1, time)
                following += 1
            _leave_out(state, out, put, first, last + 1, epoch)
