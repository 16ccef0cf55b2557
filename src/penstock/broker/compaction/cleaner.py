"""The work of compaction, for a process or a thread of its own."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import COMPACTION_MAP_BYTES, INFLATED_BATCH_BYTES
from penstock.log.header import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.broker.transactions.aborted_range import AbortedRange
    from penstock.log.interface import Rewriting
    from penstock.records.compaction.cleaning import Pass
    from penstock.records.compaction.offset_map import OffsetMap
    from penstock.records.compaction.tally import Tally

_CHUNK_BYTES: Final = 1 << 20
_SMALLEST_MAP_BYTES: Final = 64 << 10


class StoppedError(Exception):
    """The broker closes, or the topic is gone."""


class Throttle:
    """How fast a thread may read, and whether it is to go on."""

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._stopped = threading.Event()
        self._free_at = 0.0

    def stop(self) -> None:
        """Have whoever reads stop at the next step."""
        self._stopped.set()

    def passed(self, size: int) -> None:
        """Return when so many bytes may have been read. Raises StoppedError."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now) + size / self.bytes_per_second
        if self._stopped.wait(max(0.0, self._free_at - now)):
            raise StoppedError


class Job(NamedTuple):
    """What is to be known of one log for one pass."""

    rewritings: Sequence[Rewriting]
    dirty_from: int
    now_ms: int
    delete_retention_ms: int
    keeps_keyless: bool
    last_batches: Sequence[int]
    aborted: AbortedRange


class Cleaner:
    """One pass over one log. All methods are for the thread. They raise LogError, OSError and, for
    a batch that inflates to more than `inflated_bytes`, OverLimitError.
    """

    def __init__(
        self, job: Job, throttle: Throttle, inflated_bytes: int = INFLATED_BATCH_BYTES
    ) -> None:
        import numpy as np  # noqa: PLC0415

        from penstock.records import judging  # noqa: PLC0415 (compiled)
        from penstock.records.compaction import cleaning  # noqa: PLC0415
        from penstock.records.compaction.aborted import Transactions  # noqa: PLC0415
        from penstock.records.compaction.choosing import Rules  # noqa: PLC0415
        from penstock.records.compaction.offset_map import OffsetMap  # noqa: PLC0415

        self._job = job
        self._throttle = throttle
        judging.have_it_used()
        self._remember = cleaning.remember
        self._left_out = cleaning.left_out
        dirty = [each for each in job.rewritings if each.end > job.dirty_from]
        bytes_dirty = sum(each.source_bytes for each in dirty)
        size = min(int(COMPACTION_MAP_BYTES), max(_SMALLEST_MAP_BYTES, bytes_dirty))
        span = sum(each.end - each.start for each in dirty)
        self._offsets: OffsetMap = OffsetMap(size, span)
        last_batches = np.array(sorted(job.last_batches), np.int64)
        rules = Rules(job.now_ms, job.delete_retention_ms, job.keeps_keyless, last_batches)
        self._transactions = partial(Transactions, job.aborted.window)
        self._inflating = cleaning.Inflating(inflated_bytes)
        what = self._offsets, self._transactions(), rules, self._inflating
        self._pass: Pass = cleaning.Pass(*what)
        self.tally: Tally = self._pass.tally

    def map_keys(self) -> int:
        """Take the last offset of each key from what is dirty, as far as there is room; return the
        offset behind what was taken.
        """
        job = self._job
        transactions = self._transactions()
        for rewriting in job.rewritings:
            if rewriting.end <= job.dirty_from:
                continue
            for chunk in self._chunks(rewriting):
                dirty = _from(chunk, job.dirty_from)
                if not dirty:
                    continue
                stopped = self._remember(dirty, self._offsets, transactions, self._inflating)
                if stopped is not None:
                    return stopped
        return job.rewritings[-1].end

    def clean(self, rewriting: Rewriting) -> bool:
        """Write a run of segments anew; whether it is to take their place, for something is left
        out, or they become fewer. They are cleaned in their order.
        """
        changed = self.tally.batches_changed
        for chunk in self._chunks(rewriting):
            for left in self._pass.clean(chunk):
                rewriting.write(*left)
        if (rest := self._pass.end()) is not None:
            rewriting.write(*rest)
        is_changed = self.tally.batches_changed > changed
        is_changed = is_changed or rewriting.size != rewriting.source_bytes
        if not is_changed and rewriting.source_count == 1:
            return False
        rewriting.seal()
        return True

    def look_over(self, rewriting: Rewriting) -> bytes:
        """Return what a compacted view leaves out of a run of segments: bit i, of which the lowest
        of each byte comes first, stands for the offset i places after its start.
        """
        import numpy as np  # noqa: PLC0415

        found = np.zeros(rewriting.end - rewriting.start, np.bool_)
        for chunk in self._chunks(rewriting):
            for offsets in self._left_out(chunk, self._offsets, self._inflating):
                found[offsets - rewriting.start] = True
        return np.packbits(found, bitorder="little").tobytes()

    def _chunks(self, rewriting: Rewriting) -> Iterator[memoryview]:
        for chunk in rewriting.batches(_CHUNK_BYTES):
            self._throttle.passed(len(chunk))
            yield chunk


def _from(chunk: memoryview, offset: int) -> memoryview:
    """Return the batches from the one with an offset on."""
    for position, header in walk(chunk):
        if header.next_offset > offset:
            return chunk[position:]
    return chunk[:0]
