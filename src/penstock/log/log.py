"""One partition's log: batches in, batches out, and how far they are safe."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from penstock.log.checkpoint import Checkpoint
from penstock.log.commit import Flusher, GroupCommit, Round
from penstock.log.config import MAX_SEGMENT_SPAN, LogConfig
from penstock.log.errors import (
    CorruptBatchError,
    InvalidBatchError,
    LogClosedError,
    LogFailedError,
    LogReadError,
    OffsetOutOfRangeError,
)
from penstock.log.files import write_all
from penstock.log.header import HEADER_SIZE, BatchHeader, read_header, stamp, walk
from penstock.log.index import SegmentIndex
from penstock.log.recovery import Recovered, Recovery
from penstock.log.scan import MAGICS, Place
from penstock.log.segment import Segment

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.session import Buffer

logger = logging.getLogger(__name__)

_MAX_PLACES: Final = 256
"""Ends of recent reads kept per log, so that a reader that goes on needs no index."""


class Log:
    """All methods run on the event loop's thread, except `open`, which may run in any."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        files: FileSystem,
        flusher: Flusher,
        recovered: Recovered,
    ) -> None:
        self.directory = directory
        self._config = config
        self._files = files
        self._segments = recovered.segments
        self.recovery = recovered.report
        self.end_offset = recovered.end_offset
        """The next offset to be written."""
        self._active = recovered.segments[-1] if recovered.is_extendable else None
        self._checkpoint = recovered.checkpoint
        self._unchecked_bytes = recovered.report.scanned_bytes
        self.snapshot: Callable[[], bytes] | None = None
        """Asked at each checkpoint for the owner's state as of `end_offset`."""
        self._commit = GroupCommit(str(directory), flusher, self._begin_round, recovered.end_offset)
        self._sealed: list[Segment] = []
        """Full segments that the next round has to flush."""
        # Without a checkpoint nothing tells whether the log's own name is durable.
        self._unsynced_directories = [] if recovered.checkpoint.offset else [directory.parent]
        self._places: dict[int, int] = {}
        self._listeners: dict[Callable[[], None], None] = {}
        self._is_closed = False
        self.rebuilt_indexes = 0
        """Indexes that turned out wrong since the log was opened."""

    @classmethod
    def open(cls, directory: Path, config: LogConfig, files: FileSystem, flusher: Flusher) -> Log:
        """Open the log in `directory`, made if need be, and recover it. Blocks. Raises OSError."""
        files.make_directory(directory)
        return cls(directory, config, files, flusher, Recovery(directory, config, files).run())

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._segments[0].base_offset if self._segments else self.end_offset

    @property
    def flushed_offset(self) -> int:
        """Everything below is on stable storage."""
        return self._commit.flushed_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def corrupt_ranges(self) -> int:
        """How many damaged places have been seen since the log was opened."""
        return sum(len(segment.corrupt) for segment in self._segments)

    @property
    def checkpoint_state(self) -> bytes:
        """The owner's state as of `checkpoint_offset`."""
        return self._checkpoint.state

    @property
    def checkpoint_offset(self) -> int:
        """The first offset that `checkpoint_state` knows nothing of: replay from here."""
        return max(self._checkpoint.state_offset, self.start_offset)

    def append(self, parts: Sequence[Buffer], leader_epoch: int = 0) -> int:
        """Write one batch to the page cache and return its base offset.

        `parts[0]` begins with the header and is writable: offset and epoch are stamped into it.
        The caller has checked the checksum. Raises InvalidBatchError and, when a write has failed,
        now or before, LogFailedError.
        """
        self._refuse_unless_writable()
        if len(parts[0]) < HEADER_SIZE:
            raise InvalidBatchError("a batch begins with its whole header")
        header = read_header(parts[0])
        size = sum(map(len, parts))
        self._refuse_invalid(header, size, leader_epoch)
        base_offset = self.end_offset
        try:
            segment = self._segment_for(header, size)
            assert segment.file is not None, "the segment to write is open"
            assert segment.end_offset == base_offset, "offsets are contiguous"
            stamp(parts[0], base_offset, leader_epoch)
            write_all(segment.file, parts, segment.size)
            last_offset = base_offset + header.last_offset_delta
            relative = last_offset - segment.base_offset
            segment.index.add(segment.size, size, relative, header.max_timestamp)
        except OSError as error:
            raise self._fail(error) from error
        segment.size += size
        self.end_offset = segment.end_offset = last_offset + 1
        assert self.flushed_offset <= base_offset < self.end_offset, "offsets only grow"
        self._count_unchecked(size)
        for listener in tuple(self._listeners):
            listener()
        return base_offset

    def flushed(self, offset: int) -> asyncio.Future[None]:
        """Done when `offset` is on stable storage; fails with LogFailedError, LogClosedError."""
        assert offset < self.end_offset, "only what was appended can be flushed"
        return self._commit.reach(offset)

    def read(self, offset: int, max_bytes: int) -> memoryview:
        """Return whole stored batches, from the one that contains `offset` on; nothing at the end.

        The first is whole even if larger than `max_bytes`, the others fit (KIP-74). All are of
        one segment and their checksums were verified: a damaged batch ends the answer before it.
        Raises OffsetOutOfRangeError, CorruptBatchError where `offset` is in a damaged batch, and
        LogReadError.
        """
        segment = self._segment_at(offset)
        if segment is None:
            return memoryview(b"")
        at = 0 if offset == segment.base_offset else self._places.get(offset)
        place = None if at is None else Place(at, offset)
        try:
            data, following = segment.read(offset, max_bytes, place)
        except OSError as error:
            raise LogReadError(f"{segment.path}: {error}") from error
        self._remember(Place(following.position - len(data), read_header(data).base_offset))
        self._remember(following)
        self._mend_index(segment)
        return data

    def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end.

        Raises what `read` raises.
        """
        data = self.read(offset, HEADER_SIZE)
        return read_header(data) if len(data) else None

    def headers(self, start: int, end: int | None = None) -> Iterator[BatchHeader]:
        """Yield the headers of the batches that hold `start` up to `end`, but for damaged ones.

        Raises OffsetOutOfRangeError, LogReadError.
        """
        end = self.end_offset if end is None else min(end, self.end_offset)
        while start < end:
            try:
                data = self.read(start, 1 << 20)
            except CorruptBatchError as damage:
                start = damage.next_offset
                continue
            assert len(data), "a read below the end returns something"
            for _, header in walk(data):
                if header.base_offset >= end:
                    return
                yield header
                start = header.next_offset

    def find_time(self, timestamp_ms: int) -> int | None:
        """Return the base offset of the first batch whose highest timestamp is at least that.

        Raises LogReadError.
        """
        self._refuse_closed()
        for segment in self._segments:
            try:
                found = segment.find_time(timestamp_ms)
            except OSError as error:
                raise LogReadError(f"{segment.path}: {error}") from error
            self._mend_index(segment)
            if found is not None:
                return found
        return None

    def add_append_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called after each append, on the loop; it must be quick."""
        self._listeners[listener] = None

    def remove_append_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.pop(listener, None)

    async def finish(self) -> None:
        """Flush and write a checkpoint off the loop, so that `close` finds nothing left to do.

        Raises LogError.
        """
        self._refuse_unless_writable()
        if self._checkpoint.offset != self.end_offset:
            self._unchecked_bytes = self._config.checkpoint_bytes
            await self._commit.whole_round()
        else:
            await self._commit.reach(self.end_offset - 1)

    def close(self) -> None:
        """Flush, write a checkpoint so that the next start reads nothing, and close. Blocks."""
        if self._is_closed:
            return
        self._commit.settle()
        try:
            if self._commit.failure is None and self._checkpoint.offset != self.end_offset:
                self._unchecked_bytes = self._config.checkpoint_bytes
                self._commit.run_now()
        except LogFailedError:
            logger.error("%s: closed without its last flush", self.directory)  # noqa: TRY400
        finally:
            self._let_go()

    def abandon(self) -> None:
        """Close without a flush: the log is about to be removed. Blocks while a flush runs."""
        self._commit.settle()
        self._let_go()

    def _let_go(self) -> None:
        self._is_closed = True
        self._commit.close()
        for segment in self._segments:
            if segment.file is not None:
                segment.file.close()
                segment.file = None

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise LogClosedError(f"{self.directory} is closed")

    def _refuse_unless_writable(self) -> None:
        self._refuse_closed()
        if self._commit.failure is not None:
            raise self._commit.failure

    def _refuse_invalid(self, header: BatchHeader, size: int, leader_epoch: int) -> None:
        if header.size != size or not HEADER_SIZE <= size <= MAX_SEGMENT_SPAN:
            raise InvalidBatchError(f"a batch of {size} bytes states {header.size}")
        if header.magic not in MAGICS or not 0 <= header.last_offset_delta < MAX_SEGMENT_SPAN:
            raise InvalidBatchError(
                f"magic {header.magic}, last offset delta {header.last_offset_delta}"
            )
        if not 0 <= leader_epoch <= self._config.max_leader_epoch:
            raise InvalidBatchError(f"leader epoch {leader_epoch}")

    def _fail(self, error: OSError) -> LogFailedError:
        logger.error("%s: closed for writing: a write failed: %s", self.directory, error)
        failure = LogFailedError(f"{self.directory}: a write failed: {error}")
        self._commit.fail(failure)
        return failure

    def _segment_for(self, header: BatchHeader, size: int) -> Segment:
        """Return the segment that takes this batch, a new one if need be. Raises OSError."""
        segment = self._active
        if segment is None or self._is_full(segment, header, size):
            return self._roll()
        if segment.file is None:
            segment.file = self._files.open(segment.path, write=True)
        return segment

    def _is_full(self, segment: Segment, header: BatchHeader, size: int) -> bool:
        last_offset = self.end_offset + header.last_offset_delta
        return segment.size > 0 and (
            segment.size + size > self._config.segment_bytes
            or last_offset - segment.base_offset >= MAX_SEGMENT_SPAN
        )

    def _roll(self) -> Segment:
        """Begin a new segment; the next round flushes the full one. Raises OSError."""
        if self._active is not None and self._active.file is not None:
            self._active.index.save()
            self._sealed.append(self._active)
            self._unchecked_bytes = self._config.checkpoint_bytes
        stem = self.directory / f"{self.end_offset:020d}"
        segment = Segment(
            self._files,
            stem,
            self.end_offset,
            SegmentIndex(self._files, stem, self._config.index_interval_bytes),
            max_leader_epoch=self._config.max_leader_epoch,
        )
        segment.file = self._files.open(segment.path, write=True, create=True)
        self._unsynced_directories.append(self.directory)
        assert not self._segments or self._segments[-1].end_offset <= segment.base_offset
        self._segments.append(segment)
        self._active = segment
        return segment

    def _count_unchecked(self, size: int) -> None:
        self._unchecked_bytes += size
        if self._unchecked_bytes >= self._config.checkpoint_bytes:
            self._commit.ask()

    def _begin_round(self) -> Round:
        """Put together what makes everything appended so far durable. Raises OSError."""
        directories, self._unsynced_directories = self._unsynced_directories, []
        sealed, self._sealed = self._sealed, []
        round_ = Round(self._files, self.directory, self.end_offset, None)
        round_.directories = directories
        round_.sealed = [segment.file for segment in sealed if segment.file is not None]
        assert len(round_.sealed) == len(sealed), "a full segment stays open until its flush"
        round_.active = None if self._active is None else self._active.file
        for segment in sealed:
            segment.file = None
        round_.indexes = [path for segment in sealed for path in segment.index.paths]
        if self._unchecked_bytes >= self._config.checkpoint_bytes:
            if self._active is not None:
                self._active.index.save()
            round_.checkpoint = self._checkpoint = self._next_checkpoint()
            self._unchecked_bytes = 0
        return round_

    def _next_checkpoint(self) -> Checkpoint:
        state = None if self.snapshot is None else self.snapshot()
        last = self._segments[-1] if self._segments else None
        known = self._checkpoint
        assert known.offset <= self.end_offset, "a log does not shrink"
        return Checkpoint(
            self.end_offset,
            0 if last is None else last.base_offset,
            0 if last is None else last.size,
            known.state_offset if state is None else self.end_offset,
            known.state if state is None else state,
        )

    def _segment_at(self, offset: int) -> Segment | None:
        """Return the segment that holds `offset`; None at the end of the log."""
        self._refuse_closed()
        if offset == self.end_offset:
            return None
        if not self.start_offset <= offset < self.end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, self.end_offset)
        number = bisect_right(self._segments, offset, key=lambda each: each.base_offset) - 1
        assert number >= 0, "the first segment begins at the start offset"
        return self._segments[number]

    def _remember(self, place: Place) -> None:
        self._places[place.offset] = place.position
        if len(self._places) > _MAX_PLACES:
            del self._places[next(iter(self._places))]
        assert len(self._places) <= _MAX_PLACES, "what is remembered is bounded"

    def _mend_index(self, segment: Segment) -> None:
        """Rebuild an index that a look-up found wrong."""
        if segment.index.fits:
            return
        try:
            segment.rebuild_index()
        except OSError as error:
            segment.index.fits = True  # It is a hint: without it, reading is slow but right.
            logger.warning("%s: its index can't be rebuilt: %s", segment.path, error)
        self.rebuilt_indexes += 1
