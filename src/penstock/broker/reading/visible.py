"""Those batches of a read that its readers see: no markers, nothing that was aborted, and none
without messages.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import records
from penstock.log.header import read_header, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.transactions.committed import Committed
    from penstock.log.header import BatchHeader

SEEN_TOGETHER: Final = 512
"""Batches that are looked at, or where that is done in one step for all, handed out at once."""
_IN_ONE_STEP_BYTES: Final = 16 << 10
"""A read of so much is looked through by the compiled functions, once they are loaded."""


class Seen(NamedTuple):
    """Batches that readers see, with their positions; the ranges of offsets before and between them
    at which is none, ends excluded; and the offset behind all that was looked at.
    """

    batches: list[tuple[int, BatchHeader]]
    gaps: list[tuple[int, int]]
    end: int


def visible(batches: memoryview, committed: Committed, expected: int) -> Iterator[Seen]:
    """Yield what readers see who come to `expected`, one step after the other."""
    if len(batches) >= _IN_ONE_STEP_BYTES and records.is_loaded():
        yield from _by_table(batches, committed, expected)
        return
    walking = walk(batches)
    while together := list(islice(walking, SEEN_TOGETHER)):
        seen = [each for each in together if each[1].record_count and not committed.hides(each[1])]
        gaps = []
        for _, header in seen:
            if header.base_offset > expected:
                gaps.append((expected, header.base_offset))
            expected = header.next_offset
        yield Seen(seen, gaps, together[-1][1].next_offset)


def _by_table(batches: memoryview, committed: Committed, expected: int) -> Iterator[Seen]:
    import numpy as np  # noqa: PLC0415

    from penstock.records import columns, seeing  # noqa: PLC0415  # numpy

    found = seeing.shown(columns.as_bytes(batches), committed.table(), expected)
    positions, starts, ends, end = found
    before = np.append(expected, ends[:-1])
    for first in range(0, max(1, len(starts)), SEEN_TOGETHER):
        step = slice(first, first + SEEN_TOGETHER)
        is_gap = starts[step] > before[step]
        gaps = zip(before[step][is_gap].tolist(), starts[step][is_gap].tolist(), strict=True)
        is_last = first + SEEN_TOGETHER >= len(starts)
        yield Seen(
            [(at, read_header(batches, at)) for at in positions[step].tolist()],
            list(gaps),
            end if is_last else int(ends[step][-1]),
        )
