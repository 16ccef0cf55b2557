"""One pass over batches of any encodings that leaves what is the last of its key.

Every batch that stays keeps its base offset and its last offset; of one of Pulsar's each run of
messages becomes a batch. In the place of what goes between batches is one without records, so that
offsets have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.log.header import (
    NO_TIMESTAMP,
    BatchHeader,
    Magic,
    build_gap,
    read_header,
    rebuilt_header,
    walk,
)
from penstock.records import field
from penstock.records.compaction.choosing import (
    CHANGES,
    GOES,
    IS_EMPTIED,
    STAYS,
    Rules,
    choose,
    countable,
)
from penstock.records.compaction.remaking import remade
from penstock.records.compaction.tally import Tally
from penstock.records.compaction.writing import (
    EPOCH_AT,
    LAST_OFFSET,
    MAX_TIMESTAMP,
    POSITION,
    stored_numbers,
)
from penstock.records.decoding import decode, in_pieces
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Numbers
    from penstock.records.compaction.aborted import Transactions
    from penstock.records.compaction.offset_map import OffsetMap
    from penstock.records.compaction.remaking import Left
    from penstock.session import Buffer


class Cleaned(NamedTuple):
    """Batches that follow one another; of each its position, last offset and highest timestamp."""

    data: bytes
    positions: list[int]
    last_offsets: list[int]
    timestamps: list[int]


class _Gap(NamedTuple):
    start: int
    end: int
    leader_epoch: int


class _Output:
    """Puts together what is left of one piece."""

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        self._size = 0
        self._positions: list[int] = []
        self._last_offsets: list[int] = []
        self._timestamps: list[int] = []

    def add(self, batch: Buffer, header: BatchHeader) -> None:
        self._positions.append(self._size)
        self._last_offsets.append(header.last_offset)
        self._timestamps.append(header.max_timestamp)
        self._parts.append(batch)
        self._size += len(batch)

    def add_left(self, left: Left) -> None:
        """Add what is left of some batches."""
        self._positions += (left.table[POSITION] + (self._size - left.table[POSITION, 0])).tolist()
        self._last_offsets += left.table[LAST_OFFSET].tolist()
        self._timestamps += left.table[MAX_TIMESTAMP].tolist()
        self._parts.append(left.batches)
        self._size += len(left.batches)

    def add_stored(self, stored: memoryview, batches: Numbers, first: int, end: int) -> None:
        """Add the batches from one index up to another as they are stored."""
        table = batches[:, first:end]
        start = int(table[field.POSITION, 0])
        stop = int(batches[field.POSITION, end]) if end < batches.shape[1] else len(stored)
        self._positions += (table[field.POSITION] - start + self._size).tolist()
        self._last_offsets += (table[field.BASE_OFFSET] + table[field.LAST_DELTA]).tolist()
        self._timestamps += table[field.MAX_TIMESTAMP].tolist()
        self._parts.append(stored[start:stop])
        self._size += stop - start

    def take(self) -> Cleaned | None:
        if not self._parts:
            return None
        data = b"".join(self._parts)
        return Cleaned(data, self._positions, self._last_offsets, self._timestamps)


class Pass:
    """Goes over batches in the order of the log, some at a time."""

    def __init__(self, offsets: OffsetMap, transactions: Transactions, rules: Rules) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._rules = rules
        self._last_batches = frozenset(rules.last_batches.tolist())
        self._gap: _Gap | None = None
        self.tally = Tally()

    def clean(self, batches: memoryview) -> Cleaned | None:
        """Return what is left of the next batches, as far as it is known before those behind."""
        output = _Output()
        for stored, columns in _decoded(batches):
            if columns is None:
                self._close_gap(output)
                for position, header in walk(stored):
                    output.add(stored[position : position + header.size], header)
            else:
                self._clean(stored, columns, output)
        return output.take()

    def end(self) -> Cleaned | None:
        """Return what is left behind all that was returned: a new segment begins."""
        output = _Output()
        self._close_gap(output)
        return output.take()

    def _clean(self, stored: memoryview, columns: Columns, output: _Output) -> None:
        choice = choose(columns, self._offsets, self._transactions, self._rules)
        batches, fates = columns.batches, choice.fates
        changed = remade(columns, choice, self._rules.last_batches)
        self.tally.records += len(columns)
        self.tally.records_kept += int(choice.kept.sum())
        self.tally.batches_changed += int((fates == CHANGES).sum())
        borders = np.flatnonzero(np.diff(fates)) + 1
        for first, end in zip([0, *borders.tolist()], [*borders.tolist(), len(fates)], strict=True):
            fate = fates[first]
            if fate == STAYS:
                self._close_gap(output)
                output.add_stored(stored, batches, first, end)
                continue
            if fate == GOES:
                self._leave_out(columns, first, end, output)
                continue
            for batch in range(first, end):
                if fate == IS_EMPTIED:
                    self._add_emptied(_header(stored, columns, batch), output)
                elif batch in changed:
                    self._add_changed(_header(stored, columns, batch), changed[batch], output)

    def _leave_out(self, columns: Columns, first: int, end: int, output: _Output) -> None:
        """Leave out the batches from one index up to another."""
        batches = columns.batches
        epochs = stored_numbers(columns, EPOCH_AT)[first:end]
        borders = (np.flatnonzero(np.diff(epochs)) + 1 + first).tolist()
        for start, stop in zip([first, *borders], [*borders, end], strict=True):
            last = int(batches[field.BASE_OFFSET, stop - 1] + batches[field.LAST_DELTA, stop - 1])
            gap = _Gap(int(batches[field.BASE_OFFSET, start]), last + 1, int(epochs[start - first]))
            self._widen_gap(gap, output)

    def _add_changed(self, header: BatchHeader, left: Left, output: _Output) -> None:
        """Add what is left of batches, the first of which is given, with gaps around it."""
        start = header.base_offset
        if start < left.start and start in self._last_batches:
            self._add_emptied(header._replace(last_offset_delta=left.start - start - 1), output)
            start = left.start
        self._widen_gap(_Gap(start, left.start, header.leader_epoch), output)
        self._close_gap(output)
        output.add_left(left)
        self._widen_gap(_Gap(left.end, left.next_offset, left.leader_epoch), output)

    def _add_emptied(self, header: BatchHeader, output: _Output) -> None:
        """Add a batch without records that says which sequence numbers its producer has used."""
        self._close_gap(output)
        times = {"base_timestamp": NO_TIMESTAMP, "max_timestamp": NO_TIMESTAMP}
        said = header._replace(magic=Magic.KAFKA, attributes=0, record_count=0, **times)
        made = rebuilt_header(said, b"")
        output.add(made, read_header(made))

    def _widen_gap(self, further: _Gap, output: _Output) -> None:
        """Leave more offsets out. One gap has one leader epoch, which consumers ask for
        (KIP-320).
        """
        if further.start == further.end:
            return
        gap = self._gap
        if gap is not None and gap.leader_epoch == further.leader_epoch:
            self._gap = gap._replace(end=further.end)
            return
        self._close_gap(output)
        self._gap = further

    def _close_gap(self, output: _Output) -> None:
        if self._gap is None:
            return
        gap = build_gap(Magic.KAFKA, *self._gap)
        self._gap = None
        output.add(gap, read_header(gap))


def remember(batches: memoryview, offsets: OffsetMap, transactions: Transactions) -> int | None:
    """Put the keys of all records in the map; where it gets full, return the base offset of the
    first batch that is not in it as a whole.
    """
    for _, columns in _decoded(batches):
        if columns is None:
            continue
        row = offsets.put(columns, countable(columns, transactions))
        if row < len(columns):
            batch = int(np.searchsorted(columns.batches[field.FIRST_RECORD], row, "right")) - 1
            return int(columns.batches[field.BASE_OFFSET, batch])
    return None


def _decoded(batches: memoryview) -> Iterator[tuple[memoryview, Columns | None]]:
    """Yield pieces of a run with their records, None for a batch that nobody can read."""
    while batches:
        try:
            yield from list(in_pieces(batches, _decode))
        except MalformedBatchError as error:
            start, end = _range_of(batches, error.base_offset, error.next_offset)
        else:
            return
        yield from _decoded(batches[:start])
        yield batches[start:end], None
        batches = batches[end:]


def _decode(batches: memoryview) -> tuple[memoryview, Columns | None]:
    return batches, decode(batches, headers=False)


def _range_of(batches: memoryview, base_offset: int, next_offset: int) -> tuple[int, int]:
    """Return where the batches lie that hold some offsets; all of them where none does."""
    found = [
        (position, position + header.size)
        for position, header in walk(batches)
        if base_offset <= header.base_offset < next_offset
    ]
    return (found[0][0], found[-1][1]) if found else (0, len(batches))


def _header(stored: memoryview, columns: Columns, batch: int) -> BatchHeader:
    return read_header(stored, int(columns.batches[field.POSITION, batch]))
