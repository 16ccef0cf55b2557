"""Cutting what is to be read into tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from penstock.pipeline.source.offsets import OffsetRange, TopicPartition

TASK_BYTES: Final = 64 << 20
"""Stored bytes that one task reads: what is done again where a task fails, and how evenly the cores
end."""

LARGER_TASK_BYTES: Final = 128 << 20
"""Of a task where each core has `_MANY_TASKS` anyway, as Spark cuts files: a task costs some 20 ms
besides what it reads."""
_MANY_TASKS: Final = 8

SMALLEST_TASK: Final = 10_000
"""Rows below which splitting a range costs more than it brings."""

OPENING_BYTES: Final = 256 << 10
"""What a task could read while it opens one more range: that is a millisecond's work or so, however
little the range holds."""

_UNKNOWN_ROW_BYTES: Final = TASK_BYTES // SMALLEST_TASK
"""Of rows whose size nobody knows, so that no more than SMALLEST_TASK are gathered."""


class Extent(NamedTuple):
    """So many stored bytes hold the offsets from `start` up to `end`."""

    start: int
    end: int
    size_bytes: int


Extents: TypeAlias = Mapping[TopicPartition, Sequence[Extent]]


def divide(
    ranges: Sequence[OffsetRange],
    extents: Extents,
    *,
    cores: int,
    min_tasks: int | None = None,
    max_rows: int | None = None,
) -> list[OffsetRange]:
    """Cut ranges into tasks; their order is kept, and empty ones are left out.

    There are as many as `_tasks_of` says, and as `cores` do where there is enough to read for
    each. No task has more than `max_rows`. With `min_tasks` there are so many, exactly, unless
    there are more anyway, or fewer rows than that.
    """
    ranges = [each for each in ranges if each.rows > 0]
    if max_rows is not None:
        ranges = [piece for each in ranges for piece in cut(each, -(-each.rows // max_rows))]
    sizes = [bytes_in(each, extents.get(each.source, ())) for each in ranges]
    if min_tasks is not None:
        counts = _shared(ranges, sizes, min_tasks)
        return [
            piece for each, count in zip(ranges, counts, strict=True) for piece in cut(each, count)
        ]
    rows, total = sum(each.rows for each in ranges), sum(sizes)
    tasks = max(_tasks_of(total, cores), min(cores, rows // SMALLEST_TASK), 1)
    share = total / tasks or rows / tasks
    pieces = []
    for each, size in zip(ranges, sizes, strict=True):
        wanted = round((size if total else each.rows) / share)
        pieces += cut(each, max(1, min(wanted, each.rows // SMALLEST_TASK)))
    return pieces


def gather(
    ranges: Sequence[OffsetRange], extents: Extents, *, cores: int, max_rows: int | None = None
) -> list[list[OffsetRange]]:
    """Gather small ranges that follow each other into tasks of about as many bytes.

    Each range is of one task, and their order is kept. So that all `cores` have something to do,
    none of several ranges has more than its share, nor more than `max_rows`.
    """
    weights = [_weight(each, extents.get(each.source, ())) for each in ranges]
    total = sum(weights)
    share = total / max(_tasks_of(total, cores), min(cores, len(ranges)), 1)
    tasks: list[list[OffsetRange]] = []
    gathered, rows = 0, 0
    for each, weight in zip(ranges, weights, strict=True):
        gathered, rows = gathered + weight, rows + each.rows
        if tasks and gathered <= share and (max_rows is None or rows <= max_rows):
            tasks[-1].append(each)
        else:
            tasks.append([each])
            gathered, rows = weight, each.rows
    return tasks


def cut(whole: OffsetRange, pieces: int) -> list[OffsetRange]:
    """Cut a range into pieces of about the same number of rows; fewer where it has fewer rows."""
    edges = [whole.start + whole.rows * index // pieces for index in range(pieces + 1)]
    return [OffsetRange(whole.source, start, end) for start, end in pairwise(edges) if end > start]


def bytes_in(span: OffsetRange, extents: Sequence[Extent]) -> int:
    """Return about how many stored bytes a range has, 0 where nobody knows."""
    size = 0
    for each in extents:
        shared = min(span.end, each.end) - max(span.start, each.start)
        if shared > 0:
            size += each.size_bytes * shared // (each.end - each.start)
    return size


def _tasks_of(size: int, cores: int) -> int:
    """Return how many tasks so many bytes ask for."""
    return max(min(-(-size // TASK_BYTES), _MANY_TASKS * cores), -(-size // LARGER_TASK_BYTES))


def _weight(span: OffsetRange, extents: Sequence[Extent]) -> int:
    """Return how long a task has to do with a range, in bytes that it could read meanwhile."""
    return OPENING_BYTES + (bytes_in(span, extents) or span.rows * _UNKNOWN_ROW_BYTES)


def _shared(ranges: Sequence[OffsetRange], sizes: Sequence[int], tasks: int) -> list[int]:
    """Return into how many tasks each range is cut, so that there are `tasks` of them all.

    In proportion to what they hold, each range being one at least and no task without a row.
    """
    counts = [1] * len(ranges)
    weights = sizes if sum(sizes) else [each.rows for each in ranges]
    order: list[tuple[float, int]] = [
        (-weight, index) for index, weight in enumerate(weights) if ranges[index].rows > 1
    ]
    heapify(order)
    for _ in range(tasks - len(ranges)):
        if not order:
            break
        _, index = order[0]
        counts[index] += 1
        if counts[index] < ranges[index].rows:
            heapreplace(order, (-weights[index] / counts[index], index))
        else:
            heappop(order)
    return counts
