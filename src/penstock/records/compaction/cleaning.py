"""One pass over batches of any encodings that leaves what is the last of its key.

Every batch that stays keeps its base offset and its last offset; of one of Pulsar's each run of
messages becomes a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from penstock.limits import (
    COMPACTION_INFLATED_BYTES,
    COMPACTION_INFLATED_TIMES,
    INFLATED_BATCH_BYTES,
)
from penstock.log.errors import LogError
from penstock.log.header import walk
from penstock.records import field
from penstock.records.columns import as_bytes
from penstock.records.compaction.assembling import Assembly
from penstock.records.compaction.choosing import (
    CHANGES,
    GOES,
    STAYS,
    Rules,
    choose,
    countable,
    is_data,
    superseded,
)
from penstock.records.compaction.remaking import remade
from penstock.records.compaction.tally import Tally
from penstock.records.decoding import decode, in_pieces
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.made import joined

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Numbers
    from penstock.records.compaction.aborted import Transactions
    from penstock.records.compaction.assembling import Cleaned
    from penstock.records.compaction.offset_map import OffsetMap


class InflatesTooMuchError(LogError):
    """A log whose compaction would keep the cleaner from all others for long."""


class Inflating:
    """What the batches of one log inflate to: `at_once` bytes in memory, and how many times as much
    as was read of it. Few bytes of a log may be as much work as a thousand times as many.
    """

    def __init__(self, at_once: int = INFLATED_BATCH_BYTES) -> None:
        self.at_once = at_once
        self._read = self._inflated = 0

    def passed(self, read: int, inflated: int) -> None:
        """So many bytes were gone over. Raises InflatesTooMuchError."""
        self._read += read
        self._inflated += inflated
        if self._inflated > COMPACTION_INFLATED_BYTES + COMPACTION_INFLATED_TIMES * self._read:
            raise InflatesTooMuchError(
                f"{self._read} bytes inflate to more than {COMPACTION_INFLATED_TIMES} times as much"
            )

    def is_too_large(self, error: MalformedBatchError) -> bool:
        """Whether a batch that could not be read can be where more may be in memory."""
        return isinstance(error, OverLimitError) and self.at_once < INFLATED_BATCH_BYTES


class Pass:
    """Goes over batches in the order of the log, some at a time.

    Its methods, and those below, raise InflatesTooMuchError, and OverLimitError for a batch that
    alone inflates to more than may be in memory, but not to more than any batch may.
    """

    def __init__(
        self, offsets: OffsetMap, transactions: Transactions, rules: Rules, inflating: Inflating
    ) -> None:
        self._inflating = inflating
        self._offsets = offsets
        self._transactions = transactions
        self._rules = rules
        self._assembly = Assembly(rules.last_batches)
        self.tally = Tally()

    def clean(self, batches: memoryview) -> Iterator[Cleaned]:
        """Yield what is left of the next batches, as far as it is known before those behind."""
        for stored, columns in _decoded(batches, self._inflating):
            left = self._keep(stored) if columns is None else self._clean(stored, columns)
            if left is not None:
                yield left

    def end(self) -> Cleaned | None:
        """Return what is left behind all that was returned: a new segment begins."""
        return self._assembly.end()

    def _clean(self, stored: memoryview, columns: Columns) -> Cleaned | None:
        choice = choose(columns, self._offsets, self._transactions, self._rules)
        made = remade(columns, choice)
        self.tally.records += len(columns)
        self.tally.records_kept += int(choice.counts.sum())
        self.tally.batches_changed += int((choice.fates == CHANGES).sum())
        return self._assembly.add(as_bytes(stored), columns.batches, choice.fates, made)

    def _keep(self, stored: memoryview) -> Cleaned | None:
        """Return batches as they are, of which only the headers can be read, but aborted ones."""
        headers = list(walk(stored))
        batches = np.zeros((field.BATCH_FIELDS, len(headers)), np.int64)
        fates = np.full(len(headers), STAYS)
        for batch, (position, header) in enumerate(headers):
            batches[field.POSITION, batch] = position
            batches[field.BASE_OFFSET, batch] = header.base_offset
            batches[field.LAST_DELTA, batch] = header.last_offset_delta
            batches[field.MAX_TIMESTAMP, batch] = header.max_timestamp
            if is_data(header.attributes) and self._transactions.is_aborted(header):
                fates[batch] = GOES
        return self._assembly.add(as_bytes(stored), batches, fates, joined(()))


def remember(
    batches: memoryview, offsets: OffsetMap, transactions: Transactions, inflating: Inflating
) -> int | None:
    """Put the keys of all records in the map; where it gets full, return the base offset of the
    first batch that is not in it as a whole, or the offset behind it where there is no other in it.
    """
    for _, columns in _decoded(batches, inflating):
        if columns is None:
            continue
        row = offsets.put(columns, countable(columns, transactions))
        if row < len(columns):
            batch = int(np.searchsorted(columns.batches[field.FIRST_RECORD], row, "right")) - 1
            base, delta = columns.batches[[field.BASE_OFFSET, field.LAST_DELTA], batch].tolist()
            is_first = columns.offsets[columns.batches[field.FIRST_RECORD, batch]] == offsets.start
            return int(base + delta + 1 if is_first else base)
    return None


def left_out(batches: memoryview, offsets: OffsetMap, inflating: Inflating) -> Iterator[Numbers]:
    """Yield the offsets of the records that a compacted view leaves out, ascending."""
    for _, columns in _decoded(batches, inflating):
        if columns is not None:
            yield columns.offsets[superseded(columns, offsets)]


def _decoded(
    batches: memoryview, inflating: Inflating
) -> Iterator[tuple[memoryview, Columns | None]]:
    """Yield pieces of a run with their records, None for a batch that nobody can read.

    What one inflates to is forgotten before the next one is: two MiB of log may be many GiB.
    """
    while batches:
        try:
            for piece in in_pieces(batches, partial(_decode, inflated_bytes=inflating.at_once)):
                inflating.passed(len(piece[0]), len(piece[1].data))
                yield piece
                batches = batches[len(piece[0]) :]
                del piece
        except MalformedBatchError as error:
            if inflating.is_too_large(error):
                raise
            start, end = _range_of(batches, error.base_offset, error.next_offset)
        else:
            return
        yield from _decoded(batches[:start], inflating)
        yield batches[start:end], None
        batches = batches[end:]


def _decode(batches: memoryview, inflated_bytes: int) -> tuple[memoryview, Columns]:
    return batches, decode(batches, headers=False, inflated_bytes=inflated_bytes)


def _range_of(batches: memoryview, base_offset: int, next_offset: int) -> tuple[int, int]:
    """Return where the batches lie that hold some offsets; all of them where none does."""
    found = [
        (position, position + header.size)
        for position, header in walk(batches)
        if base_offset <= header.base_offset < next_offset
    ]
    return (found[0][0], found[-1][1]) if found else (0, len(batches))
