"""Batches that stand side by side and share one fate, so that many cost little more than one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from penstock.broker.subscriptions.bitmaps import BITS, BLOCK, blocks_between, span
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


UNKNOWN_BEGINS: Final = 0


class BatchRun:
    """The offsets from `start` up to `end`; bit i of `begins` is set where a batch begins at
    `start` + i.

    One that has several batches lies in one block of offsets, unless it is not known where those
    begin.
    """

    __slots__ = ("begins", "end", "start")

    def __init__(self, start: int, end: int, begins: int = 1) -> None:
        self.start = start
        self.end = end
        self.begins = begins

    def extent(self, offset: int) -> tuple[int, int] | None:
        """Return the batch that begins at an offset, or None where none does."""
        if offset == self.start and self.begins == 1:
            return offset, self.end
        if not self.start <= offset < self.end:
            return None
        later = self.begins >> (offset - self.start)
        if not later & 1:
            return None
        if later & 2:
            return offset, offset + 1
        later ^= 1
        return offset, (offset + (later & -later).bit_length() - 1 if later else self.end)

    def begins_of(self, start: int, end: int) -> int:
        """Return where batches begin in a part, which begins with one."""
        if self.begins in {1, UNKNOWN_BEGINS}:
            return self.begins
        return (self.begins >> (start - self.start)) & span(0, end - start) | 1

    def extend(self, start: int, end: int, begins: int = 1) -> bool:
        """Take in what stands right behind, where one block has room for both."""
        if start != self.end or (end - 1) // BLOCK != self.start // BLOCK:
            return False
        if UNKNOWN_BEGINS in {self.begins, begins}:
            return False
        at = start - self.start
        self.begins |= BITS[at] if begins == 1 else begins << at
        self.end = end
        return True


class BatchSpan(NamedTuple):
    """What a run of batches is made of: where it lies, where batches begin in it as `BatchRun` says
    it, and how many offsets are theirs.
    """

    start: int
    end: int
    begins: int
    size: int


def cut_into_spans(starts: Sequence[int], ends: Sequence[int]) -> Iterator[BatchSpan]:
    """Cut batches that follow one another, of which each begins and ends somewhere, into as few
    spans as hold them. What lies between two batches is in the span of both.
    """
    at = 0
    while at < len(starts):
        start = starts[at]
        behind = max(bisect_right(ends, (start // BLOCK + 1) * BLOCK, at), at + 1)
        end = ends[behind - 1]
        inside = starts[at:behind]
        size = sum(ends[at:behind]) - sum(inside)
        are_all_single = behind - at == end - start
        begins = span(0, end - start) if are_all_single else _bits_at(inside, start)
        yield BatchSpan(start, end, begins, size)
        at = behind


def _bits_at(places: Iterable[int], start: int) -> int:
    return sum(BITS[place - start] for place in places)


RunT = TypeVar("RunT", bound=BatchRun)


class BatchRuns(Generic[RunT]):
    """Runs of which none overlaps another.

    Each is listed in every block of offsets that it touches, so that those of a range are found in
    a time that does not depend on how many there are.
    """

    def __init__(self) -> None:
        # Ordered, because a dict finds its first key ever more slowly as first keys are removed.
        self._by_start: OrderedDict[int, RunT] = OrderedDict()
        self._blocks: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._by_start)

    def __iter__(self) -> Iterator[RunT]:
        """In the order in which they were added."""
        return iter(self._by_start.values())

    def get(self, start: int) -> RunT | None:
        """Return the one that begins at an offset."""
        return self._by_start.get(start)

    def count_near(self, offset: int) -> int:
        """Return how many touch the block that an offset lies in."""
        return len(self._blocks.get(offset // BLOCK, ()))

    def find(self, offset: int) -> RunT | None:
        """Return the one that an offset lies in."""
        run = self._by_start.get(offset)
        if run is not None:
            return run
        starts = self._blocks.get(offset // BLOCK)
        if starts is None:
            return None
        at = bisect_right(starts, offset) - 1
        if at < 0:
            return None
        run = self._by_start[starts[at]]
        return run if offset < run.end else None

    def overlapping(self, start: int, end: int) -> list[RunT]:
        """Return those of which a part lies between two offsets, in order of offset."""
        run = self._by_start.get(start)
        if run is not None and start < end <= run.end:
            return [run]
        if start >= end:
            return []
        found: dict[int, RunT] = {}
        for number in blocks_between(self._blocks, start, end):
            starts = self._blocks.get(number, ())
            # The one that begins last before `start` may reach into the range.
            first = max(bisect_right(starts, start) - 1, 0)
            for at in starts[first : bisect_left(starts, end, first)]:
                run = self._by_start[at]
                if run.end > start:
                    found[at] = run
        return list(found.values())

    def add(self, run: RunT) -> None:
        assert run.start not in self._by_start, "a message has one holder"
        self._by_start[run.start] = run
        for number in _blocks_of(run):
            starts = self._blocks.get(number)
            if starts is None:
                self._blocks[number] = [run.start]
            else:
                insort(starts, run.start)

    def remove(self, run: RunT) -> None:
        removed = self._by_start.pop(run.start)
        assert removed is run, "each is removed once"
        for number in _blocks_of(run):
            starts = self._blocks[number]
            del starts[bisect_left(starts, run.start)]
            if not starts:
                del self._blocks[number]

    def clear(self) -> None:
        drop(self._by_start, self._blocks)
        self._by_start, self._blocks = OrderedDict(), {}


def _blocks_of(run: BatchRun) -> Iterable[int]:
    first, last = run.start // BLOCK, (run.end - 1) // BLOCK
    return (first,) if first == last else range(first, last + 1)
