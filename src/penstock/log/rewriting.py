"""Writing some segments of a log anew, in a thread: what is left of their batches becomes one."""

from __future__ import annotations

import errno
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.config import MAX_SEGMENT_SPAN
from penstock.log.errors import CorruptBatchError
from penstock.log.files import RealFileSystem, write_all
from penstock.log.header import HEADER_SIZE, read_header
from penstock.log.index import SegmentIndex
from penstock.log.interface import Sealed
from penstock.log.reading import SharedFile
from penstock.log.replacement import Replacement
from penstock.log.scan import Place, read_sound
from penstock.log.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from penstock.log.config import LogConfig
    from penstock.log.files import File, FileSystem
    from penstock.log.scan import Bounds
    from penstock.session import Buffer

_BEGUN_BYTES: Final = 256 << 10
"""What is written before the disk is to begin with it, so that a flush has little left to do: a
producer's waits for one that has begun.
"""
_SYNCED_BYTES: Final = 16 << 20
"""What is written between two flushes at least, so that a slow disk is waited for."""

_FOR_A_WHILE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_TRIES: Final = 50
_TRY_SECONDS: Final = 0.1


class Source(NamedTuple):
    """What is to be known of a segment to read all of it, as a `Segment` says it too."""

    path: Path
    base_offset: int
    bounds: Bounds


class SegmentPlan(NamedTuple):
    """The `RewritingPlan` of a log in local files."""

    directory: Path
    config: LogConfig
    sources: tuple[Source, ...]
    leader_epoch: int

    def begin(self) -> SegmentRewriting:
        """Return one that does the same."""
        directory, config, sources, leader_epoch = self
        return SegmentRewriting(directory, RealFileSystem(), config, sources, leader_epoch)


class SegmentRewriting:
    """The `Rewriting` of a log in local files."""

    def __init__(
        self,
        directory: Path,
        files: FileSystem,
        config: LogConfig,
        sources: Sequence[Segment | Source],
        leader_epoch: int,
    ) -> None:
        self.sources = tuple(sources)
        self.start = sources[0].base_offset
        self.end = sources[-1].bounds.end_offset
        self.size = 0
        """Bytes of the new segment, so far."""
        self.is_sealed = False
        self.has_begun = False
        """Whether the log has changed on the disk."""
        self.replaced: Segment
        """The new segment, once it is in its place."""
        self._replacement = Replacement(directory, self.start, self.end)
        self._files = files
        self._config = config
        self._leader_epoch = leader_epoch
        self._index = self._new_index(self._replacement.stem)
        self._file: File | None = None
        self._next_offset = self.start
        self._begun = self._synced = 0
        """How much the disk has been asked to write, and how much it has."""

    @property
    def source_count(self) -> int:
        """How many segments it replaces."""
        return len(self.sources)

    @property
    def source_bytes(self) -> int:
        """Bytes of those that it replaces."""
        return sum(segment.bounds.end_position for segment in self.sources)

    def batches(self, chunk_bytes: int) -> Iterator[memoryview]:
        """Yield all batches that are stored there, as `Rewriting` says."""
        for segment in self.sources:
            place, bounds = Place(0, segment.base_offset), segment.bounds
            with closing(self._files.open(segment.path)) as file:
                shared = SharedFile(file)
                while place.position < bounds.end_position:
                    found = read_sound(shared, place, chunk_bytes, bounds)
                    if not found.data:
                        raise CorruptBatchError(
                            place.offset, bounds.end_offset, str(segment.path), place.position
                        )
                    yield found.data
                    place = place.after(found)

    def write(
        self,
        batches: Buffer,
        positions: Sequence[int],
        last_offsets: Sequence[int],
        latest: Sequence[int],
    ) -> None:
        """Add batches that follow on those before, as `Rewriting` says."""
        assert read_header(batches).base_offset == self._next_offset, "offsets have no gaps"
        if self._file is None:
            path = self._replacement.stem.with_suffix(".log")
            self._file = self._files.open(path, write=True, create=True)
            self._file.truncate(0)
        if self.size + len(batches) > MAX_SEGMENT_SPAN:
            raise OSError(errno.EFBIG, "what is left takes more than it did", str(self.start))
        write_all(self._file, [batches], self.size)
        place = (self.start, self.size)
        self._index.add_run(place, len(batches), positions, last_offsets, latest)
        self.size += len(batches)
        self._next_offset = last_offsets[-1] + 1
        if self.size - self._begun >= _BEGUN_BYTES:
            self._file.begin_writing(self._begun, self.size - self._begun)
            self._begun = self.size
        if self.size - self._synced >= _SYNCED_BYTES:
            self._file.fdatasync()
            self._synced = self.size

    def seal(self) -> None:
        """Have all of it on stable storage. Raises OSError."""
        assert self._file is not None, "something is left of every segment"
        assert self._next_offset == self.end, "no offset is left out"
        self._file.fdatasync()
        self._index.save()
        for path in self._index.paths:
            with closing(self._files.open(path, write=True)) as index:
                index.fdatasync()
        self._close()
        self.is_sealed = True

    def discard(self) -> None:
        """Remove what was written, unless it has taken its place. Raises OSError."""
        self._close()
        if self.has_begun:
            return
        self._replacement.discard(self._files)

    def plan(self) -> SegmentPlan | None:
        """Return what another process does it by, as `Rewriting` says."""
        if type(self._files) is not RealFileSystem:
            return None
        sources = [Source(each.path, each.base_offset, each.bounds) for each in self.sources]
        return SegmentPlan(
            self._replacement.directory, self._config, tuple(sources), self._leader_epoch
        )

    @property
    def sealed(self) -> Sealed:
        """What there is, once it is sealed."""
        assert self.is_sealed, "there is an end to it"
        return Sealed(self.size, self._index.sizes)

    def take(self, sealed: Sealed) -> None:
        """Take what another process has sealed, as `Rewriting` says."""
        self.size = sealed.size
        self._index = self._new_index(self._replacement.stem, sealed.index_sizes)
        self.is_sealed = True

    def put(self) -> None:
        """Replace the files, while nobody reads them. Raises OSError.

        Once it `has_begun`, an error leaves the log to its next recovery, which goes on with it.
        """
        assert self.is_sealed, "what counts as complete is flushed"
        self._replacement.complete(self._files)
        self.has_begun = True
        self._finish()
        self.replaced = self._segment()

    def _finish(self) -> None:
        """Go on until it is done, also where files are short for a while. Raises OSError."""
        for tries_left in reversed(range(_TRIES)):
            try:
                self._replacement.finish(self._files)
            except OSError as error:
                if error.errno not in _FOR_A_WHILE or not tries_left:
                    raise
                time.sleep(_TRY_SECONDS)
            else:
                return

    def _segment(self) -> Segment:
        segment = Segment(
            self._files,
            self._replacement.place,
            self.start,
            self._new_index(self._replacement.place, self._index.sizes),
            max_leader_epoch=self._leader_epoch,
        )
        segment.size, segment.end_offset = self.size, self.end
        assert segment.size >= HEADER_SIZE, "a segment holds a batch"
        return segment

    def _new_index(self, stem: Path, sizes: tuple[int, int] = (0, 0)) -> SegmentIndex:
        return SegmentIndex(self._files, stem, self._config.index_interval_bytes, sizes)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
