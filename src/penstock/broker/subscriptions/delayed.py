"""What a subscription keeps from its consumers until a time that came with each message.

A million messages may wait, each for a time of its own. So they are numbers in arrays, about twenty
bytes a run of messages, and no object each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import add
from typing import Final

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.pace import drop

TICK_MS: Final = 100
"""Messages of one tick are due together, at its end: none comes early, or later than by that.
Pulsar's is a second, and it lets messages go up to that much early."""

_CHUNK_RUNS: Final = 1_024
"""Few enough that a chunk is changed, halved or swept at once."""
_RUN_BYTES: Final = 22
_CHUNK_BYTES: Final = 600
"""About what a run takes of memory, and a chunk without its runs."""


def tick_of(due_ms: int) -> int:
    """Return the tick at which a message is due that says when, in milliseconds since 1970."""
    return -(-due_ms // TICK_MS)


class _Chunk:
    """Runs side by side in the order of all: run i is due at `ticks[i]`."""

    __slots__ = ("lengths", "starts", "ticks")

    def __init__(self, ticks: array[int], starts: array[int], lengths: array[int]) -> None:
        self.ticks = ticks
        self.starts = starts
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.starts)

    def cut(self, at: int) -> _Chunk:
        """Take out the runs from one on, and return them."""
        taken = _Chunk(self.ticks[at:], self.starts[at:], self.lengths[at:])
        del self.ticks[at:], self.starts[at:], self.lengths[at:]
        return taken

    def above(self, offset: int) -> _Chunk:
        """Return those of the runs that do not end below an offset."""
        runs = zip(self.ticks, self.starts, self.lengths, strict=True)
        kept = [run for run in runs if run[1] + run[2] > offset]
        ticks, starts, lengths = zip(*kept, strict=True) if kept else ((), (), ())
        return _Chunk(array("q", ticks), array("q", starts), array("I", lengths))


class Delayed:
    """Runs of offsets, in the order of the ticks at which they are due, and then of offsets.

    To add one costs O(log n) and a move within its chunk. Batches that stand side by side and are
    due at one tick are one run, as far as that lies in one block of offsets.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        """None is empty."""
        self._firsts: list[tuple[int, int]] = []
        """Tick and start of each chunk's first run."""
        self._runs = 0
        self._swept = 0
        """How many of the chunks were swept since it began with the first one."""

    def __len__(self) -> int:
        """How many runs there are."""
        return self._runs

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return self._runs * _RUN_BYTES + len(self._chunks) * _CHUNK_BYTES

    @property
    def first_due_ms(self) -> int:
        """When the first is due; there is one."""
        return self._firsts[0][0] * TICK_MS

    def add(self, due_ms: int, start: int, end: int) -> None:
        """Add a batch; nothing happens where it is there for the same time."""
        tick = tick_of(due_ms)
        if not self._chunks:
            self._chunks.append(_Chunk(array("q"), array("q"), array("I")))
            self._firsts.append((tick, start))
        number = max(bisect_right(self._firsts, (tick, start)) - 1, 0)
        chunk = self._chunks[number]
        low = bisect_left(chunk.ticks, tick)
        at = bisect_right(chunk.starts, start, low, bisect_right(chunk.ticks, tick, low))
        if at > low:
            before = chunk.starts[at - 1]
            before_end = before + chunk.lengths[at - 1]
            if start < before_end:
                return
            if start == before_end and before // BLOCK == (end - 1) // BLOCK:
                chunk.lengths[at - 1] += end - start
                return
        chunk.ticks.insert(at, tick)
        chunk.starts.insert(at, start)
        chunk.lengths.insert(at, end - start)
        self._runs += 1
        if at == 0:
            self._firsts[number] = tick, start
        if len(chunk) > _CHUNK_RUNS:
            upper = chunk.cut(_CHUNK_RUNS // 2)
            self._chunks.insert(number + 1, upper)
            self._firsts.insert(number + 1, (upper.ticks[0], upper.starts[0]))

    def take_due(self, now_ms: int, most: int) -> list[tuple[int, int]]:
        """Take out runs that are due, those of the first tick first: so many at most, and maybe
        fewer than there are.
        """
        if not self._chunks:
            return []
        due = self._chunks[0]
        count = min(bisect_right(due.ticks, now_ms // TICK_MS), most)
        if not count:
            return []
        self._replace(0, due.cut(count), count)
        ends = map(add, due.starts, due.lengths)
        return list(zip(due.starts, ends, strict=True))

    def sweep(self, below: int) -> bool:
        """Drop what ends below an offset, of another chunk with each call; return whether that was
        most of the chunk.
        """
        if not self._chunks:
            return False
        self._swept %= len(self._chunks)
        chunk = self._chunks[self._swept]
        if min(chunk.starts) >= below:
            self._swept += 1
            return False
        kept = chunk.above(below)
        gone = len(chunk) - len(kept)
        self._replace(self._swept, kept, gone)
        self._swept += 1 if kept else 0
        return 2 * gone > len(chunk)

    def clear(self) -> None:
        drop(self._chunks, self._firsts)
        self._chunks, self._firsts = [], []
        self._runs = self._swept = 0

    def _replace(self, number: int, chunk: _Chunk, gone: int) -> None:
        """Put in the place of a chunk what is left of it, without so many of its runs."""
        self._runs -= gone
        if chunk:
            self._chunks[number] = chunk
            self._firsts[number] = chunk.ticks[0], chunk.starts[0]
        else:
            del self._chunks[number], self._firsts[number]
