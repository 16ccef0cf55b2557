"""Reading batches in one encoding, whichever they are stored in; what was converted is kept.

A client asks for a megabyte or less at a time, and some for a few messages out of a large batch.
So, as a file system does for files, a reader that goes on where it stopped has the next batches
converted ahead of it, and what it did not take yet is kept for it.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import OrderedDict, deque
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.reading.conversion import convert, gap, in_thread
from penstock.broker.reading.latest import LatestBatches
from penstock.limits import (
    CONVERTED_AHEAD_BYTES,
    CONVERTED_AT_ONCE_BYTES,
    CONVERTED_BYTES,
    CONVERTED_RUNS,
)
from penstock.log import LogError
from penstock.log.batches import whole_before
from penstock.log.header import HEADER_SIZE, Magic, read_header, walk
from penstock.memory import Holding
from penstock.records import ENCODINGS, MalformedBatchError
from penstock.records.errors import OverLimitError

if TYPE_CHECKING:
    from penstock.log import Batches, Log
    from penstock.memory import Memory
    from penstock.records import Encoding
    from penstock.session import Buffer

logger = logging.getLogger(__name__)


class Taken(NamedTuple):
    """Whole batches, their bytes, and the offset behind the last."""

    parts: list[Buffer]
    size: int
    next_offset: int

    @classmethod
    def of(cls, batches: Batches) -> Taken:
        """Return what a log had, as it is stored."""
        parts: list[Buffer] = [batches.data] if batches.data else []
        return cls(parts, len(batches.data), batches.next_offset)

    @property
    def is_gap(self) -> bool:
        """Whether it has no record, but says that offsets hold none any more."""
        return self.size > 0 and all(
            header.size == HEADER_SIZE for part in self.parts for _, header in walk(part)
        )


class ConvertedRun:
    """Batches in one encoding, as they follow one another in the log.

    `stored_size` is what was read for them, in bytes, `size` what they are now.
    """

    def __init__(self, parts: list[Buffer], stored_size: int) -> None:
        self._parts = [_measured(part) for part in parts]
        self.stored_size = stored_size
        self.size = sum(part.ends[-1] for part in self._parts)
        self.start_offset = read_header(parts[0]).base_offset
        self.next_offset = self._parts[-1].next_offsets[-1]

    def take(
        self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool = True
    ) -> Taken:
        """Return batches that fit, from the one that holds `offset`, or the first behind it, on.

        All lie below `end_offset`. With `at_least_one` the first is returned whatever its size.
        Nothing where all lie before.
        """
        taken: list[Buffer] = []
        left = max_bytes
        for part in self._parts:
            first = bisect_right(part.next_offsets, offset)
            if first == len(part.ends):
                continue
            start = part.ends[first - 1] if first else 0
            end = bisect_right(part.ends, start + left)
            if at_least_one and not taken:
                end = max(end, first + 1)
            end = min(end, bisect_right(part.next_offsets, end_offset))
            if end <= first:
                break
            taken.append(part.view[start : part.ends[end - 1]])
            left -= len(taken[-1])
            offset = part.next_offsets[end - 1]
            if end < len(part.ends):
                break
        return Taken(taken, max_bytes - left, offset)


class _Part(NamedTuple):
    """A buffer of whole batches: where each ends in it, and the offset behind its last."""

    view: memoryview
    ends: list[int]
    next_offsets: list[int]


def _measured(part: Buffer) -> _Part:
    from penstock.records import batch_headers, columns, field  # noqa: PLC0415  # numpy

    table = batch_headers.read_batch_headers(columns.as_bytes(part))
    next_offsets = table[field.BASE_OFFSET] + table[field.LAST_DELTA] + 1
    return _Part(memoryview(part), table[field.BODY_END].tolist(), next_offsets.tolist())


async def _run_of(parts: list[Buffer], stored_size: int) -> ConvertedRun:
    """Measure what was converted, which takes a while where it is many batches."""
    if sum(map(len, parts)) <= CONVERTED_AT_ONCE_BYTES:
        return ConvertedRun(parts, stored_size)
    return await in_thread(ConvertedRun, parts, stored_size)


def _passed_over(
    stored: Batches, target: Encoding, error: MalformedBatchError
) -> tuple[Batches, list[Buffer]]:
    """Return the first batch, and what stands in its place. Raises `error` where nothing may."""
    unreadable = whole_before(stored, error.next_offset)
    if target == Magic.PULSAR or isinstance(error, OverLimitError) or not unreadable.data:
        raise error
    logger.warning("nobody can read messages of a producer, which are left out: %s", error)
    return unreadable, [gap(unreadable.data, target)]


class ConversionCache:
    """What was converted lately, of all partitions. Of what nobody asked for the oldest goes first.

    Readers of one log stand at different places, so several runs of it are kept.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.latest = LatestBatches(memory)
        self._kept: OrderedDict[tuple[Log, Encoding], deque[ConvertedRun]] = OrderedDict()
        """The newest run of a log comes first, the log that was read last comes last."""
        self._held = Holding(memory.caches)
        memory.add_cache(self)

    async def read(
        self, log: Log, offset: int, max_bytes: int, target: Encoding, end: int
    ) -> Taken:
        """Return whole batches below `end` in the encoding of `target`, as Partition.read does.

        A batch that its own protocol could not read either says nothing to the others: its offsets
        are passed over, and the log says so. For Pulsar, whose clients can be told, and where it
        takes more memory than there may be, MalformedBatchError is raised where `offset` is in it;
        the answer ends before such a batch further on. Raises what Log.read raises, too.
        """
        kept = self._find(log, offset, target)
        if kept is None:
            replacements = log.replacements
            stored = await log.read(offset, max_bytes, end)
            if stored.magic == target or not stored.data:
                return Taken.of(stored)
            converted = await self._convert(log, stored, target, replacements)
            return converted.take(offset, max_bytes, end)
        taken = kept.take(offset, max_bytes, end)
        left = max_bytes - taken.size
        if taken.next_offset == kept.next_offset and (left > 0 or not taken.parts):
            more = await self._read_on(log, kept, left, target, end, at_least_one=not taken.parts)
            if more is not None:
                parts = [*taken.parts, *more.parts]
                return Taken(parts, taken.size + more.size, more.next_offset)
        return taken

    def empty(self) -> None:
        """Drop all that was kept; see penstock.memory.Cache."""
        self._kept.clear()
        self._held.set(0)

    def forget(self, log: Log) -> None:
        """Drop what was kept of a log that is gone, or of which something was replaced."""
        self.latest.forget(log)
        for target in ENCODINGS:
            self._count(-sum(run.size for run in self._kept.pop((log, target), ())))

    def trim(self, log: Log) -> None:
        """Drop what was kept of batches below the log's start offset."""
        for target in ENCODINGS:
            runs = self._kept.pop((log, target), deque())
            left = deque(run for run in runs if run.next_offset > log.start_offset)
            self._count(sum(run.size for run in left) - sum(run.size for run in runs))
            if left:
                self._kept[log, target] = left
        assert self._held.size >= 0, "no more is dropped than was kept"

    def _find(self, log: Log, offset: int, target: Encoding) -> ConvertedRun | None:
        """Return what holds `offset`, else what ends there."""
        runs = self._kept.get((log, target))
        if runs is None or offset < log.start_offset:
            return None
        self._kept.move_to_end((log, target))
        holding = (run for run in runs if run.start_offset <= offset < run.next_offset)
        ending = (run for run in runs if run.next_offset == offset)
        return next(chain(holding, ending), None)

    async def _read_on(
        self,
        log: Log,
        kept: ConvertedRun,
        max_bytes: int,
        target: Encoding,
        end: int,
        *,
        at_least_one: bool,
    ) -> Taken | None:
        """Have more than is asked for converted of what follows `kept`, and return what is."""
        offset = kept.next_offset
        ahead = kept.stored_size * (2 if kept.size < CONVERTED_AHEAD_BYTES else 1)
        replacements = log.replacements
        try:
            stored = await log.read(offset, max(max_bytes, ahead), end)
            if not stored.data:
                return None
            converted = await self._convert(log, stored, target, replacements)
        except (LogError, MalformedBatchError):
            if at_least_one:
                raise
            return None  # What precedes is an answer; whoever reads on hears of this.
        return converted.take(offset, max_bytes, end, at_least_one=at_least_one)

    async def _convert(
        self, log: Log, stored: Batches, target: Encoding, replacements: int
    ) -> ConvertedRun:
        """Convert what was read when the log had this count of `replacements`; keep it if it has it
        still.
        """
        with self.memory.reading() as held:
            try:
                parts = await convert(log, stored.data, target, held)
            except MalformedBatchError as error:
                held.set(0)
                before = whole_before(stored, error.base_offset)
                if before.data:
                    stored = before
                    parts = await convert(log, stored.data, target, held)
                else:
                    stored, parts = _passed_over(stored, target, error)
            converted = await _run_of(parts, len(stored.data))
        if log.replacements == replacements:
            self._keep(log, target, converted)
        return converted

    def _keep(self, log: Log, target: Encoding, converted: ConvertedRun) -> None:
        runs = self._kept.setdefault((log, target), deque())
        runs.appendleft(converted)
        self._count(converted.size)
        if len(runs) > CONVERTED_RUNS:
            self._count(-runs.pop().size)
        while self._held.size > CONVERTED_BYTES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, runs = next(iter(self._kept.items()))
        self._count(-runs.pop().size)
        if not runs:
            del self._kept[key]

    def _count(self, size: int) -> None:
        self._held.set(self._held.size + size)
