"""One pass over batches of any encodings that leaves what is the last of its key.

Every batch that stays keeps its base offset and its last offset; of one of Pulsar's each run of
messages becomes a batch. In the place of what goes between batches is one without records, so that
offsets have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
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
    Choice,
    Rules,
    choose,
    countable,
)
from penstock.records.compaction.iggy import iggy_bodies
from penstock.records.compaction.kafka import kafka_bodies
from penstock.records.compaction.pulsar import pulsar_runs
from penstock.records.compaction.tally import Tally
from penstock.records.decoding import decode, in_pieces
from penstock.records.errors import MalformedBatchError
from penstock.records.kafka.compression import compress_kafka

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Mask, Numbers
    from penstock.records.compaction.aborted import Transactions
    from penstock.records.compaction.offset_map import OffsetMap
    from penstock.session import Buffer

_ATTRIBUTES_LOW_AT: Final = 22


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

    def add_left(self, left: _Left) -> None:
        """Add what is left of a batch."""
        self._positions += [self._size + position for position in left.positions]
        self._last_offsets += left.last_offsets
        self._timestamps += left.timestamps
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
        changed = _changed(stored, columns, choice)
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
            for batch in range(first, end):
                header = read_header(stored, int(batches[field.POSITION, batch]))
                if fate == GOES:
                    self._widen_gap(header, header.base_offset, header.next_offset, output)
                elif fate == IS_EMPTIED:
                    self._add_emptied(header, output)
                else:
                    self._add_changed(header, changed[batch], output)

    def _add_changed(self, header: BatchHeader, left: _Left, output: _Output) -> None:
        """Add what is left of a batch, with gaps around it."""
        start = header.base_offset
        if start < left.start and start in self._last_batches:
            self._add_emptied(header._replace(last_offset_delta=left.start - start - 1), output)
            start = left.start
        self._widen_gap(header, start, left.start, output)
        self._close_gap(output)
        output.add_left(left)
        self._widen_gap(header, left.end, header.next_offset, output)

    def _add_emptied(self, header: BatchHeader, output: _Output) -> None:
        """Add a batch without records that says which sequence numbers its producer has used."""
        self._close_gap(output)
        times = {"base_timestamp": NO_TIMESTAMP, "max_timestamp": NO_TIMESTAMP}
        said = header._replace(magic=Magic.KAFKA, attributes=0, record_count=0, **times)
        made = rebuilt_header(said, b"")
        output.add(made, read_header(made))

    def _widen_gap(self, header: BatchHeader, start: int, end: int, output: _Output) -> None:
        """Leave offsets of a batch out. One gap has one leader epoch, which consumers ask for
        (KIP-320).
        """
        if start == end:
            return
        gap = self._gap
        if gap is not None and gap.leader_epoch == header.leader_epoch:
            self._gap = gap._replace(end=end)
            return
        self._close_gap(output)
        self._gap = _Gap(start, end, header.leader_epoch)

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


class _Left(NamedTuple):
    """Batches that are left of one, which follow one another from the offset `start` to `end`; of
    each its position, last offset and highest timestamp.
    """

    batches: Buffer
    start: int
    end: int
    positions: list[int]
    last_offsets: list[int]
    timestamps: list[int]


def _changed(stored: memoryview, columns: Columns, choice: Choice) -> dict[int, _Left]:
    """Return what becomes of the batches that change, by their indexes."""
    batches = columns.batches
    changed = np.flatnonzero(choice.fates == CHANGES)
    found: dict[int, _Left] = {}
    for magic in Magic:
        chosen = changed[batches[field.MAGIC, changed] == magic]
        if len(chosen):
            found.update(_MAKERS[magic](stored, columns, choice, chosen))
    return found


def _left(stored: memoryview, columns: Columns, choice: Choice, batch: int, body: Buffer) -> _Left:
    """Return what is left of a batch that stays one."""
    batches = columns.batches
    header = read_header(stored, int(batches[field.POSITION, batch]))
    rows = _rows(columns, batch)
    kept = choice.kept[rows]
    header = _in_time(header, columns.timestamps[rows], kept)
    if header.magic != Magic.PULSAR and len(kept):
        header = header._replace(record_count=int(kept.sum()))
    header = _with_horizon(header, choice, batch)
    made = b"".join((rebuilt_header(header, body), body))
    last, time = header.last_offset, header.max_timestamp
    return _Left(made, header.base_offset, header.next_offset, [0], [last], [time])


def _rows(columns: Columns, batch: int) -> slice:
    first, count = columns.batches[[field.FIRST_RECORD, field.RECORDS], batch].tolist()
    return slice(first, first + count)


def _in_time(header: BatchHeader, times: Numbers, kept: Mask) -> BatchHeader:
    """Return the header of a batch for those of its records that are kept."""
    is_appended = header.attributes & ATTRIBUTE_LOG_APPEND_TIME
    if not len(times) or is_appended or times[kept].max() == times.max():
        return header
    return header._replace(max_timestamp=int(times[kept].max()) // 1000)


def _with_horizon(header: BatchHeader, choice: Choice, batch: int) -> BatchHeader:
    if not choice.get_horizon[batch]:
        return header
    attributes = header.attributes | ATTRIBUTE_DELETE_HORIZON
    return header._replace(attributes=attributes, base_timestamp=choice.horizon)


def _left_of_kafka(
    stored: memoryview, columns: Columns, choice: Choice, chosen: Numbers
) -> Iterator[tuple[int, _Left]]:
    batches = columns.batches
    stored_times = batches[field.BASE_TIMESTAMP, chosen]
    times = np.where(choice.get_horizon[chosen], choice.horizon, stored_times)
    out, ends = kafka_bodies(columns, chosen, choice.kept, times)
    starts = [0, *ends.tolist()]
    for batch, start, end, time in zip(chosen.tolist(), starts, ends, times, strict=False):
        attributes = int(batches[field.ATTRIBUTES, batch])
        if attributes & ATTRIBUTE_CONTROL:
            body = _marker_body(stored, int(batches[field.POSITION, batch]), int(time))
        else:
            body = compress_kafka(attributes & ATTRIBUTE_COMPRESSION, out.data[start:end])
        yield batch, _left(stored, columns, choice, batch, body)


def _marker_body(stored: memoryview, position: int, base_timestamp: int) -> Buffer:
    """Return the record of a control batch with its time counted from another base timestamp."""
    batch = bytearray(stored[position : position + read_header(stored, position).size])
    batch[_ATTRIBUTES_LOW_AT] &= ~ATTRIBUTE_CONTROL  # Only so are its records looked at.
    columns = decode(batch)
    all_of_it = np.ones(len(columns), np.bool_)
    times = np.array([base_timestamp], np.int64)
    out, ends = kafka_bodies(columns, np.zeros(1, np.int64), all_of_it, times)
    return out[: ends[0]].data


def _left_of_pulsar(
    stored: memoryview, columns: Columns, choice: Choice, chosen: Numbers
) -> Iterator[tuple[int, _Left]]:
    whole = choice.counts[chosen] == columns.batches[field.RECORDS, chosen]
    for batch in chosen[whole].tolist():
        header = read_header(stored, position := int(columns.batches[field.POSITION, batch]))
        body = stored[position + HEADER_SIZE : position + header.size]
        yield batch, _left(stored, columns, choice, batch, body)
    if not whole.all():
        yield from _runs(columns, choice, chosen[~whole])


def _runs(columns: Columns, choice: Choice, cut: Numbers) -> Iterator[tuple[int, _Left]]:
    """Yield what is left of entries that lose some of their messages."""
    horizons = np.where(choice.get_horizon, choice.horizon, -1)
    made = pulsar_runs(columns, cut, choice.kept, horizons)
    positions, firsts, lasts, times = made.table.tolist()
    data, start = made.data.data, 0
    for batch, end in zip(cut.tolist(), made.ends, strict=True):
        begin, part = positions[start], slice(start, end)
        yield (
            batch,
            _Left(
                data[begin : positions[end]],
                *(firsts[start], lasts[end - 1] + 1),
                [position - begin for position in positions[part]],
                *(lasts[part], times[part]),
            ),
        )
        start = end


def _left_of_iggy(
    stored: memoryview, columns: Columns, choice: Choice, chosen: Numbers
) -> Iterator[tuple[int, _Left]]:
    out, ends = iggy_bodies(columns, chosen, choice.kept)
    for batch, (start, end) in zip(chosen.tolist(), pairwise([0, *ends.tolist()]), strict=True):
        yield batch, _left(stored, columns, choice, batch, out.data[start:end])


_MAKERS: Final = {
    Magic.KAFKA: _left_of_kafka,
    Magic.PULSAR: _left_of_pulsar,
    Magic.IGGY: _left_of_iggy,
}
