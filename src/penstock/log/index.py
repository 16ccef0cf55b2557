"""The sparse indexes of one segment, in the layout of Kafka's own `.index` and `.timeindex`.

An index is a hint: whoever uses an entry looks at the batch that it names, and a segment whose
entries don't hold is indexed anew. So entries need no checksum, and are synced only for speed.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from contextlib import closing
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from penstock.log.files import write_all
from penstock.log.header import HEADER_SIZE
from penstock.log.reading import lending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.reading import Lend, Readable

_OFFSET_ENTRY: Final = struct.Struct(">ii")
"""Last offset of a batch, relative to the segment's base; position of that batch."""

_TIME_ENTRY: Final = struct.Struct(">qi")
"""Highest timestamp (ms) so far; last offset, relative, of the batch that has it."""

_SAVE_AT: Final = 512
"""Entries kept in memory before they are written out: 2 MiB of log at the default interval."""

_TRIES: Final = 8
"""How many entries a look-up offers, nearest first, in case the nearest don't hold."""

Entry = tuple[int, int]


class EntryFile:
    """Entries sorted by their first field: those in the file, then those not yet saved."""

    def __init__(self, files: FileSystem, path: Path, layout: struct.Struct, size: int) -> None:
        self._files = files
        self.path = path
        self._layout = layout
        self._saved = size // layout.size
        self._tail: list[Entry] = []
        self._newest: Entry | None = None
        """The last entry; None where it has to be looked for in the file, if there is one."""
        self.is_held = False
        """Whether entries stay in memory, for somebody else writes the file."""
        self.is_whole = size % layout.size == 0

    @property
    def size(self) -> int:
        """Bytes of the file, all of whose entries are saved."""
        return self._saved * self._layout.size

    def append(self, entry: Entry) -> None:
        self._tail.append(entry)
        self._newest = entry
        if len(self._tail) % _SAVE_AT == 0:
            self.save()

    def extend(self, entries: Sequence[Entry]) -> None:
        self._tail += entries
        self._newest = self._tail[-1] if self._tail else self._newest
        if len(self._tail) >= _SAVE_AT:
            self.save()

    def save(self) -> None:
        """Write out what is only in memory. Raises OSError."""
        assert self.is_whole, "entries are added to whole ones"
        if self.is_held:
            return
        order, fields = self._layout.format[0], self._layout.format[1:]
        data = struct.pack(order + len(self._tail) * fields, *chain.from_iterable(self._tail))
        with closing(self._files.open(self.path, write=True, create=True)) as file:
            write_all(file, [data] if data else [], self._saved * self._layout.size)
        # In this order: a thread that looks meanwhile may find an entry twice, but never misses it.
        self._saved += len(self._tail)
        self._tail = []

    def last(self, lend: Lend | None = None) -> Entry | None:
        """Return the newest entry. Raises OSError."""
        newest, saved = self._newest, self._saved
        if newest is not None or not saved:
            return newest
        if lend is not None:
            return self._entry(lend(self.path), saved - 1)
        with lending(self._files) as lend_anew:
            self._newest = self._entry(lend_anew(self.path), saved - 1)
        return self._newest

    def below(self, key: int, lend: Lend) -> list[Entry]:
        """Return a few of the entries whose first field is at most `key`, nearest first.

        Raises OSError.
        """
        tail, saved = self._tail, self._saved
        cut = bisect_right(tail, key, key=lambda entry: entry[0])
        found = tail[max(0, cut - _TRIES) : cut]
        if len(found) < _TRIES and saved:
            found = self._saved_below(key, saved, lend(self.path)) + found
        # A damaged entry may have led the search astray.
        return [entry for entry in reversed(found) if entry[0] <= key][:_TRIES]

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`, which are saved. Raises OSError."""
        assert count <= self._saved, "only saved entries are kept"
        with closing(self._files.open(self.path, write=True, create=True)) as file:
            file.truncate(count * self._layout.size)
        self._saved = count
        self._tail = []
        self._newest = None
        self.is_whole = True

    def take_over(self, built: EntryFile, key: int) -> None:
        """Go on where another one for the same file has ended; entries up to `key` are in there."""
        self._tail = [*built._tail, *(entry for entry in self._tail if entry[0] > key)]
        self._saved = built._saved
        self._newest = self._newest if self._newest in self._tail[-1:] else built._newest
        self.is_held = False

    def load(self) -> list[Entry]:
        """Return every saved entry. Raises OSError."""
        if not self._saved:
            return []
        with closing(self._files.open(self.path)) as file:
            data = file.pread(self._saved * self._layout.size, 0)
        whole = len(data) - len(data) % self._layout.size
        return [(first, second) for first, second in self._layout.iter_unpack(data[:whole])]

    def _saved_below(self, key: int, saved: int, file: Readable) -> list[Entry]:
        cut = bisect_right(range(saved), key, key=lambda number: self._entry(file, number)[0])
        return [self._entry(file, number) for number in range(max(0, cut - _TRIES), cut)]

    def _entry(self, file: Readable, number: int) -> Entry:
        data = file.pread(self._layout.size, number * self._layout.size)
        if len(data) < self._layout.size:
            return (1 << 62, 0)  # The file is shorter than it was: nothing is to be found there.
        first, second = self._layout.unpack(data)
        return first, second


class SegmentIndex:
    """Both indexes of one segment; they grow together, by an entry every `interval` bytes."""

    def __init__(
        self, files: FileSystem, stem: Path, interval: int, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        self.interval = interval
        self.offsets = EntryFile(files, stem.with_suffix(".index"), _OFFSET_ENTRY, sizes[0])
        self.times = EntryFile(files, stem.with_suffix(".timeindex"), _TIME_ENTRY, sizes[1])
        self.fits = self.offsets.is_whole and self.times.is_whole
        # Unknown for a file that was there before: the next batch then gets an entry at once.
        self._unindexed = interval + 1 if any(sizes) else 0
        self._latest: Entry | None = None

    @property
    def paths(self) -> list[Path]:
        return [self.offsets.path, self.times.path]

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of both files as they were saved last."""
        return self.offsets.size, self.times.size

    def latest(self, lend: Lend | None = None) -> Entry:
        """Return the highest timestamp so far and the relative offset that has it."""
        if self._latest is None:
            self._latest = self.times.last(lend) or (-1, 0)
        return self._latest

    def has_no_time(self, lend: Lend) -> bool:
        """Whether no batch so far has a timestamp."""
        return self.times.last(lend) is None and self.latest(lend)[0] < 0

    def add(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        """Take note of a batch at the segment's end. `last_offset` is relative. Raises OSError."""
        assert size > 0 <= last_offset, "batches are indexed as they are appended"
        if timestamp > self.latest()[0]:
            self._latest = (timestamp, last_offset)
        if self._unindexed > self.interval:
            self.offsets.append((last_offset, position))
            self._add_time()
            self._unindexed = 0
        self._unindexed += size

    def add_run(
        self,
        place: Entry,
        size: int,
        positions: Sequence[int],
        last_offsets: Sequence[int],
        latest: Sequence[int],
    ) -> None:
        """As `add` for each batch of a run of so many bytes. Raises OSError.

        `place` is what last offsets and positions in the run count from; `latest` is the highest
        timestamp of the run up to each batch. What is not indexed is not looked at.
        """
        offsets, times = list[Entry](), list[Entry]()
        found, last_time = self.latest(), self.times.last() or (-1, 0)
        since, at = -self._unindexed, 0
        count, most = len(positions), self.interval // HEADER_SIZE + 1
        while True:
            end = min(count, at + most)
            at = bisect_right(positions, since + self.interval, at, end)
            if at == count:
                break
            since = positions[at]
            offsets.append((last_offsets[at] - place[0], since + place[1]))
            if latest[at] > found[0]:
                found = (latest[at], last_offsets[bisect_left(latest, latest[at])] - place[0])
            if found[0] > last_time[0]:
                times.append(found)
                last_time = found
            at += 1
        self._unindexed = size - since
        if latest[-1] > found[0]:
            found = (latest[-1], last_offsets[bisect_left(latest, latest[-1])] - place[0])
        self._latest = found
        self.offsets.extend(offsets)
        self.times.extend(times)

    def _add_time(self) -> None:
        latest, last = self.latest(), self.times.last()
        assert last is None or latest[0] >= last[0], "the highest timestamp so far never falls"
        if latest[0] >= 0 and (last is None or latest[0] > last[0]):
            self.times.append(latest)

    def save(self) -> None:
        """Bring both files up to date, with the highest timestamp as the last entry."""
        self._add_time()
        self.offsets.save()
        self.times.save()

    def cut(self, position: int, last_offset: int) -> None:
        """Keep what describes the bytes before `position`; all goes if it makes no sense.

        `last_offset` is relative and the last one before `position`. Raises OSError.
        """
        offsets = self.offsets.load() if self.offsets.is_whole else []
        times = self.times.load() if self.times.is_whole else []
        kept = [e for e in offsets if e[1] < position and e[0] <= last_offset]
        kept_times = [e for e in times if e[1] <= last_offset]
        self.fits = kept == offsets[: len(kept)] and kept_times == times[: len(kept_times)]
        self.fits = self.fits and _ascends(kept) and _ascends(kept_times)
        self.offsets.keep(len(kept) if self.fits else 0)
        self.times.keep(len(kept_times) if self.fits else 0)
        self._latest = None
        self._unindexed = self.interval + 1 if self.fits else 0

    def hold(self) -> None:
        """Keep entries in memory until `take_over`: another index is being written to the files."""
        self.offsets.is_held = self.times.is_held = True
        self._unindexed = self.interval + 1

    def take_over(self, built: SegmentIndex) -> None:
        """Go on where `built` has ended: all that was added here lies behind it."""
        latest = built.latest()
        self.offsets.take_over(built.offsets, -1)
        self.times.take_over(built.times, latest[0])
        self._latest = max(latest, self.latest(), key=lambda entry: entry[0])

    def clear(self) -> None:
        """Drop every entry. Raises OSError."""
        self.offsets.keep(0)
        self.times.keep(0)
        self._latest = None
        self._unindexed = 0
        self.fits = True


def _ascends(entries: list[Entry]) -> bool:
    return all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(entries))
