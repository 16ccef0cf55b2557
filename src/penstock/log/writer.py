"""The writing half of a log's files: what stands in line is written by a thread.

An append puts its batch in line and returns. A thread takes what stands there, many batches in one
system call. It is the only one that opens, writes and cuts the log's last file: the event loop
never waits for a disk that holds a write up. Where there is no disk it does a thread's work itself.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import WRITE_AT_ONCE_BYTES
from penstock.log.files import write_all
from penstock.log.scan import Place
from penstock.log.verified import BOUNDARY_SPACING_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import File, FileSystem
    from penstock.log.segment import Segment
    from penstock.session import Buffer

logger = logging.getLogger(__name__)

BATCHES_TOGETHER: Final = 512
"""With a header and a body each, as many as one vectored write takes."""


class QueuedBatch(NamedTuple):
    """A batch in line for its place in the log. Without parts, only its segment is to begin."""

    segment: Segment
    position: int
    parts: Sequence[Buffer]
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int


class SoundRun(NamedTuple):
    """Batches of one encoding that follow one another, as `Verified` takes them."""

    start: Place
    end_position: int
    end_offset: int
    magic: int


class Written(NamedTuple):
    """What one write has added to one segment; `file` is where the segment lies open."""

    segment: Segment
    file: File
    size: int
    end_offset: int
    runs: Sequence[SoundRun]


class Unsynced(NamedTuple):
    """What a flush has to make durable, and the first offset that it does not reach."""

    files: list[File]
    full: list[Segment]
    """The segments of all of the files but the last, which are written no more."""
    directories: set[Path]
    end_offset: int
    written_bytes: int


class LogWriter:
    """Methods may be called by any thread; `queue` and `written` are shared with the event loop,
    which calls the others only where it `is_quick`.

    After a failed write, the file is cut back to where it was, and nothing more is written until
    the loop has seen `failure`, emptied the line, whose offsets do not hold any more, and put
    `failure` back to None.
    """

    def __init__(
        self, directory: Path, files: FileSystem, active: Segment | None, end_offset: int
    ) -> None:
        self.queue: deque[list[QueuedBatch]] = deque()
        """Each entry is of one segment, and is written as a whole or not at all."""
        self.written: deque[Written] = deque()
        self.failure: OSError | None = None
        self._directory = directory
        self._files = files
        self._lock = threading.Lock()
        self._active = active
        self._file: File | None = None
        self._torn_at: int | None = None
        """Where a failed write may have left bytes in the active file."""
        self._full: list[tuple[Segment, File]] = []
        self._directories: set[Path] = set()
        self._unsaved: list[Segment] = []
        """Full segments whose indexes are not durable."""
        self._end_offset = end_offset
        self._written_bytes = 0

    @property
    def is_quick(self) -> bool:
        """Whether what stands in line is written and flushed before a thread would have begun.

        For the event loop, at a time at which no thread writes: then it may do that itself.
        """
        file, queue = self._file, self.queue
        if file is None or not file.is_in_memory or self._full or self._directories:
            return False
        if not queue:
            return True
        first, last = queue[0][0], queue[-1][-1]
        is_of_active = first.segment is self._active is last.segment
        return is_of_active and last.position + last.size - first.position <= WRITE_AT_ONCE_BYTES

    def write(self) -> None:
        """Write what stands in line. Raises OSError."""
        with self._lock:
            self._write()

    def write_and_take(self) -> Unsynced:
        """Write what stands in line, and return what is to be flushed then. Raises OSError."""
        with self._lock:
            self._write()
            full, self._full = self._full, []
            directories, self._directories = self._directories, set()
            files = [file for _, file in full] + ([] if self._file is None else [self._file])
            segments = [segment for segment, _ in full]
            return Unsynced(files, segments, directories, self._end_offset, self._written_bytes)

    def name_again(self, directories: set[Path]) -> None:
        """The names in these directories could not be made durable: the next flush has to."""
        with self._lock:
            self._directories |= directories

    def save_indexes(self) -> list[Segment]:
        """Bring the index files up to date; return the full segments among theirs, to be synced
        and then to be `forgotten`. Raises OSError.
        """
        with self._lock:
            for segment in self._unsaved:
                segment.index.save()
            if self._active is not None and self._file is not None:
                self._active.index.save()
            return list(self._unsaved)

    def forget_saved(self, segments: list[Segment]) -> None:
        """The indexes of these are durable."""
        with self._lock:
            self._unsaved = [each for each in self._unsaved if each not in segments]

    def _write(self) -> None:
        if self.failure is not None:
            raise self.failure
        # What joins it meanwhile is left: a flush would not begin while there is more without end.
        in_line = len(self.queue)
        while in_line:
            taken = self._next(in_line)
            in_line -= len(taken)
            batches = list(chain.from_iterable(taken))
            try:
                file = self._file_of(batches[0].segment)
                self._write_batches(file, batches)
            except OSError as error:
                self.failure = error
                raise

    def _next(self, most: int) -> list[list[QueuedBatch]]:
        """Take those from the line that go into one segment with one system call."""
        taken = [self.queue.popleft()]
        count = len(taken[0])
        while len(taken) < most and count + len(self.queue[0]) <= BATCHES_TOGETHER:
            if self.queue[0][0].segment is not taken[0][0].segment:
                break
            count += len(self.queue[0])
            taken.append(self.queue.popleft())
        return taken

    def _file_of(self, segment: Segment) -> File:
        """Open the segment's file, and cut off what a failed write left. Raises OSError."""
        if segment is not self._active or self._file is None:
            self._open(segment)
        assert self._file is not None, "the active segment is open"
        if self._torn_at is not None:
            self._file.truncate(self._torn_at)
            self._torn_at = None
        return self._file

    def _open(self, segment: Segment) -> None:
        """Go on in this segment. A full one is left to the next flush. Raises OSError."""
        is_new = segment is not self._active
        file = self._files.open(segment.path, write=True, create=is_new)
        if is_new:
            if self._active is not None and self._file is not None:
                self._finish_index(self._active)
                self._full.append((self._active, self._file))
            self._directories.add(self._directory)
            self._torn_at = None
        self._active, self._file = segment, file
        self.written.append(Written(segment, file, 0, segment.end_offset, ()))

    def _write_batches(self, file: File, batches: list[QueuedBatch]) -> None:
        first, last = batches[0], batches[-1]
        parts = [part for batch in batches for part in batch.parts]
        try:
            write_all(file, parts, first.position)
        except OSError:
            self._cut_back(file, first.position)
            raise
        if not parts:
            return
        self._index(batches)
        size = last.position + last.size - first.position
        self._end_offset = last.last_offset + 1
        self._written_bytes += size
        self.written.append(Written(first.segment, file, size, self._end_offset, _runs(batches)))

    def _cut_back(self, file: File, position: int) -> None:
        """Leave nothing of a failed write behind; else the next one begins with that."""
        try:
            file.truncate(position)
        except OSError:
            self._torn_at = position

    def _index(self, batches: list[QueuedBatch]) -> None:
        segment = batches[0].segment
        add, base_offset = segment.index.add, segment.base_offset
        for batch in batches:
            if batch.parts:
                relative = batch.last_offset - base_offset
                try:
                    add(batch.position, batch.size, relative, batch.max_timestamp)
                except OSError as error:
                    self._warn_of_index(segment, error)

    def _finish_index(self, segment: Segment) -> None:
        self._unsaved.append(segment)
        try:
            segment.index.save()
        except OSError as error:
            self._warn_of_index(segment, error)

    def _warn_of_index(self, segment: Segment, error: OSError) -> None:
        # It stays in memory, and there is no checkpoint before it was saved.
        logger.warning("%s: its index can't be saved: %s", segment.path, error)


def _runs(batches: Sequence[QueuedBatch]) -> list[SoundRun]:
    """Join what stands side by side and is of one encoding, but for boundaries to remember."""
    runs: list[SoundRun] = []
    first = last = batches[0]
    for batch in batches:
        length = batch.position - first.position
        if batch.magic != first.magic or length >= BOUNDARY_SPACING_BYTES:
            runs.append(_run(first, last))
            first = batch
        last = batch
    runs.append(_run(first, last))
    return runs


def _run(first: QueuedBatch, last: QueuedBatch) -> SoundRun:
    start = Place(first.position, first.base_offset)
    return SoundRun(start, last.position + last.size, last.last_offset + 1, first.magic)
