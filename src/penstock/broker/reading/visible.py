"""Those batches of a read that its readers see: no markers, nothing that was aborted, and none
without messages.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from penstock import records
from penstock.log.header import ATTRIBUTE_CONTROL, read_header, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.transactions.committed import Committed
    from penstock.log.header import BatchHeader

SEEN_TOGETHER: Final = 512
"""Batches that are looked at, or where that is done in one step for all, handed out at once."""
_IN_ONE_STEP_BYTES: Final = 16 << 10
"""A read of so much is looked through by the compiled functions, once they are loaded."""


def visible(
    batches: memoryview, committed: Committed
) -> Iterator[tuple[list[tuple[int, BatchHeader]], int]]:
    """Yield some of those that readers see, with their positions, and the offset behind all that
    was looked at, one step after the other.
    """
    if len(batches) >= _IN_ONE_STEP_BYTES and records.is_loaded():
        yield from _by_table(batches, committed)
        return
    walking = walk(batches)
    while together := list(islice(walking, SEEN_TOGETHER)):
        seen = [each for each in together if each[1].record_count and not committed.hides(each[1])]
        yield seen, together[-1][1].next_offset


def _by_table(
    batches: memoryview, committed: Committed
) -> Iterator[tuple[list[tuple[int, BatchHeader]], int]]:
    from penstock.records import batch_headers, columns, field  # noqa: PLC0415  # numpy

    table = batch_headers.read_batch_headers(columns.as_bytes(batches))
    has_messages = table[field.COUNT] != 0
    has_messages &= (table[field.ATTRIBUTES] & ATTRIBUTE_CONTROL) == 0
    positions = table[field.POSITION, has_messages].tolist()
    end = int(table[[field.BASE_OFFSET, field.LAST_DELTA], -1].sum()) + 1
    for start in range(0, max(1, len(positions)), SEEN_TOGETHER):
        together = [(at, read_header(batches, at)) for at in positions[start:][:SEEN_TOGETHER]]
        is_last = start + SEEN_TOGETHER >= len(positions)
        following = end if is_last else together[-1][1].next_offset
        yield [each for each in together if not committed.hides(each[1])], following
