"""One partition's log in files of its own folder."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.limits import FROM_FILE_BYTES
from penstock.log.batches import no_batches, whole_before
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
from penstock.log.interface import SavedState
from penstock.log.look_ups import LookUps
from penstock.log.recovery import Recovered, Recovery
from penstock.log.scan import MAGICS, Bounds, Place
from penstock.log.segment import Segment
from penstock.log.states import States

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.batches import Batches
    from penstock.log.files import FileSystem
    from penstock.log.reading import Lend
    from penstock.session import Buffer, FileRange

logger = logging.getLogger(__name__)


_HEADERS_READ_BYTES: Final = 1 << 20

FoundT = TypeVar("FoundT")


class LocalLog:
    """The `Log` over local files. Reads suspend where they would wait for the disk, or work long.

    All methods run on the event loop's thread, except `open`, which may run in any.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        files: FileSystem,
        flusher: Flusher,
        leader_epoch: int,
        recovered: Recovered,
    ) -> None:
        self.directory = directory
        self.leader_epoch = leader_epoch
        self._config = config
        self._files = files
        self._flusher = flusher
        self._look_ups = LookUps(files, flusher.readers)
        self._segments = recovered.segments
        self.recovery = recovered.report
        self.start_offset = recovered.start_offset
        """The first offset that can be read."""
        self._trimmed_to = recovered.start_offset
        """Up to where the trim is durable."""
        self.end_offset = recovered.end_offset
        """The next offset to be written."""
        self._active = recovered.segments[-1] if recovered.is_extendable else None
        self._checkpoint = recovered.checkpoint
        self._states = States(directory, recovered.checkpoint.states)
        self._unchecked_bytes = recovered.report.scanned_bytes
        self._commit = GroupCommit(
            *(str(directory), flusher, self._begin_round, recovered.end_offset),
            config.flush_interval_seconds,
        )
        self.stored_bytes = 0
        self._sealed: list[Segment] = []
        """Full segments that the next round has to flush."""
        # Without a checkpoint nothing says whether the log's own name is durable.
        self._unsynced_directories = [] if recovered.checkpoint.offset else [directory.parent]
        self._is_closed = False
        assert self.start_offset <= self.end_offset, "a log begins before it ends"

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig,
        files: FileSystem,
        flusher: Flusher,
        leader_epoch: int = 0,
    ) -> LocalLog:
        """Open the log in `directory`, made if need be, and recover it. Blocks.

        Raises LogMissingError and OSError.
        """
        assert leader_epoch >= 0, "an epoch is a count"
        files.make_directory(directory)
        recovered = Recovery(directory, config, files, leader_epoch).run()
        return cls(directory, config, files, flusher, leader_epoch, recovered)

    @property
    def flushed_offset(self) -> int:
        """Everything below is on stable storage."""
        return self._commit.flushed_offset

    @property
    def flushed_bytes(self) -> int:
        return self._commit.flushed_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all stored batches."""
        return sum(segment.size for segment in self._segments)

    @property
    def files(self) -> list[Path]:
        """The files at both ends of the log; they are there as long as it is open."""
        return [self._segments[0].path, self._segments[-1].path] if self._segments else []

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def corrupt_ranges(self) -> int:
        """How many damaged places have been seen in what is stored since the log was opened."""
        return sum(len(segment.corrupt) for segment in self._segments)

    @property
    def rebuilt_indexes(self) -> int:
        """Indexes that turned out wrong since the log was opened."""
        return self._look_ups.rebuilt_indexes

    def register_state(self, name: str, snapshot: Callable[[], bytes]) -> SavedState:
        """Keep an owner's state in the checkpoints, as `Log` says."""
        kept = self._states.register(name, snapshot)
        return SavedState(kept.state, max(kept.offset, self.start_offset))

    def watch(self, advanced: Callable[[], None]) -> None:
        """Have `advanced` called when more is safe, as `Log` says."""
        self._commit.advanced = advanced

    def append(self, parts: Sequence[Buffer], header: BatchHeader) -> int:
        """Write one batch to the page cache and return its base offset, as `Log` says."""
        self._refuse_unless_writable()
        size = sum(map(len, parts))
        _refuse_invalid(header, size, len(parts[0]))
        base_offset = self.end_offset
        try:
            segment = self._segment_for(header, size)
            assert segment.file is not None, "the segment to write is open"
            assert segment.end_offset == base_offset, "offsets are contiguous"
            stamp(parts[0], base_offset, self.leader_epoch)
            write_all(segment.file, parts, segment.size)
            last_offset = base_offset + header.last_offset_delta
            relative = last_offset - segment.base_offset
            segment.index.add(segment.size, size, relative, header.max_timestamp)
        except OSError as error:
            raise self._fail(error) from error
        segment.verified.add(
            Place(segment.size, base_offset), segment.size + size, last_offset + 1, header.magic
        )
        segment.size += size
        self.stored_bytes += size
        self.end_offset = segment.end_offset = last_offset + 1
        assert self.flushed_offset <= base_offset < self.end_offset, "offsets only grow"
        self._count_unchecked(size)
        return base_offset

    def flushed(self, offset: int) -> asyncio.Future[None]:
        """Done when `offset` is on stable storage; fails with LogFailedError, LogClosedError."""
        assert offset < self.end_offset, "only what was appended can be flushed"
        return self._commit.reach(offset)

    def flush_soon(self) -> None:
        """Have what was appended flushed within the flush interval."""
        self._commit.ask_soon()

    async def read(self, offset: int, max_bytes: int, end: int | None = None) -> Batches:
        """Return whole batches, all of one segment, as `Log` says."""
        end = self.end_offset if end is None else end
        segment = self._segment_at(offset)
        if segment is None or offset >= end:
            return no_batches(offset)
        place = self._look_ups.place_of(segment, offset)
        bounds = segment.bounds

        def look_up(lend: Lend) -> tuple[Batches, Place]:
            return segment.read(lend, bounds, offset, max_bytes, place, end)

        batches, following = await self._look_up(look_up, segment, offset)
        start = Place(following.position - len(batches.data), batches.base_offset)
        if batches.magic is not None:
            segment.verified.add(start, *following, batches.magic)
        self._look_ups.remember(start)
        self._look_ups.remember(following)
        return batches if batches.next_offset <= end else whole_before(batches, end)

    def sound_range(
        self, offset: int, max_bytes: int, magic: int, end: int | None = None
    ) -> FileRange | None:
        """Return whole batches as a range of a file, as `Log` says."""
        end = self.end_offset if end is None else end
        segment = self._segment_at(offset)
        if segment is None or offset >= end:
            return None
        start = self._look_ups.place_of(segment, offset)
        if start is None:
            return None
        following = segment.sound_range(start, max_bytes, end, magic)
        if following is None or following.position - start.position < FROM_FILE_BYTES:
            return None
        try:
            return self._look_ups.range_of(segment, start, following)
        except OSError:
            return None  # There is no descriptor to be had; a read says so where it fails as well.

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end."""
        batches = await self.read(offset, HEADER_SIZE)
        return read_header(batches.data) if batches.data else None

    async def headers(
        self, start: int, end: int | None = None
    ) -> AsyncGenerator[BatchHeader, None]:
        """Yield the headers of the batches that hold `start` up to `end`, but for damaged ones."""
        end = self.end_offset if end is None else min(end, self.end_offset)
        while start < end:
            try:
                batches = await self.read(start, _HEADERS_READ_BYTES)
            except CorruptBatchError as damage:
                start = damage.next_offset
                continue
            assert batches.next_offset > start, "a read below the end returns something"
            for _, header in walk(batches.data):
                if header.base_offset >= end:
                    return
                yield header
            start = batches.next_offset
            await asyncio.sleep(0)  # Others have work too.

    async def find_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset of the first batch whose highest timestamp is at least that."""
        self._refuse_closed()
        start = self.start_offset
        for segment in self._segments:
            if segment.end_offset <= start:
                continue
            look_up = partial(_find_time, segment, segment.bounds, timestamp_ms, start)
            found = await self._look_up(look_up, segment, start)
            if found is not None:
                return max(found, self.start_offset)
        return None

    async def trim(self, offset: int) -> None:
        """Give up everything below `offset`, and remove the segments that lie there.

        The start offset is durable before any of them is. It lies in the checkpoint: where that is
        lost to damage, what is left of the first segment can be read again.
        """
        self._refuse_unless_writable()
        if offset > self.end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, self.end_offset)
        if offset <= self._trimmed_to:
            return
        self._move_start(offset)
        self._unchecked_bytes = self._config.checkpoint_bytes
        await self._commit.whole_round()
        self._trimmed_to = max(self._trimmed_to, offset)
        assert self._trimmed_to <= self.start_offset, "what is durable was given up before"
        remove = partial(_unlink, self._files, self._take_trimmed())
        await asyncio.wrap_future(self._flusher.submit(remove))

    async def finish(self) -> None:
        """Flush and write a checkpoint off the loop, so that `close` finds nothing left to do."""
        self._refuse_unless_writable()
        if self._is_checkpointed:
            await self._commit.reach(self.end_offset - 1)
        else:
            self._unchecked_bytes = self._config.checkpoint_bytes
            await self._commit.whole_round()

    def close(self) -> None:
        """Flush, write a checkpoint so that the next start reads nothing, and close. Blocks."""
        if self._is_closed:
            return
        self._commit.settle()
        try:
            if self._commit.failure is None and not self._is_checkpointed:
                self._unchecked_bytes = self._config.checkpoint_bytes
                self._commit.run_now()
        except LogFailedError:
            logger.error("%s: closed without its last flush", self.directory)  # noqa: TRY400
        finally:
            self._release()

    def abandon(self) -> None:
        """Close without a flush: the log is about to be removed, once `released` returns."""
        self._is_closed = True
        self._commit.close()
        if self._commit.is_idle:
            self._release()

    async def released(self) -> None:
        """Return when nothing uses the files of a log that was abandoned."""
        await self._commit.idle()
        self._release()

    @property
    def _is_checkpointed(self) -> bool:
        known = self._checkpoint
        is_whole = (known.start_offset, known.offset) == (self.start_offset, self.end_offset)
        # Of a log without a batch there is no state to keep.
        return is_whole and (self._states.are_kept or not self.end_offset)

    def _release(self) -> None:
        self._is_closed = True
        self._commit.close()
        for segment in self._segments:
            if segment.file is not None:
                segment.file.close()
                segment.file = None
            self._look_ups.forget(segment)

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise LogClosedError(f"{self.directory} is closed")

    def _refuse_unless_writable(self) -> None:
        self._refuse_closed()
        if self._commit.failure is not None:
            raise self._commit.failure

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
            max_leader_epoch=self.leader_epoch,
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
        round_ = Round(self._files, self.directory, self.end_offset, self.stored_bytes, None)
        round_.directories = directories
        round_.sealed = [segment.file for segment in sealed if segment.file is not None]
        assert len(round_.sealed) == len(sealed), "a full segment stays open until its flush"
        round_.active = None if self._active is None else self._active.file
        for segment in sealed:
            segment.file = None
        round_.indexes = [path for segment in sealed for path in segment.index.paths]
        # The first one says that something was written: a log of which all is lost is no new one.
        is_first = self.end_offset > 0 == self._checkpoint.offset
        if is_first or self._unchecked_bytes >= self._config.checkpoint_bytes:
            if self._active is not None:
                self._active.index.save()
            round_.checkpoint = self._checkpoint = self._next_checkpoint()
            self._unchecked_bytes = 0
        return round_

    def _next_checkpoint(self) -> Checkpoint:
        last = self._segments[-1] if self._segments else None
        assert self._checkpoint.offset <= self.end_offset, "a log does not shrink"
        return Checkpoint(
            self.end_offset,
            0 if last is None else last.base_offset,
            0 if last is None else last.size,
            self.start_offset,
            self._states.take(self.end_offset),
        )

    def _move_start(self, offset: int) -> None:
        """Let nothing below `offset` be read any more. Raises LogFailedError."""
        assert offset <= self.end_offset, "what is not there can't be given up"
        if offset <= self.start_offset:
            return
        if offset == self.end_offset:
            try:
                self._roll()  # So that the last segment can be removed like the others.
            except OSError as error:
                raise self._fail(error) from error
        self.start_offset = offset
        self._look_ups.forget_below(offset)

    def _take_trimmed(self) -> list[Segment]:
        """Return the segments that were trimmed durably, which the log forgets with that."""
        last = max(len(self._segments) - 1, 0)
        ends = [segment.end_offset for segment in self._segments[:last]]
        count = bisect_right(ends, self._trimmed_to)
        trimmed, self._segments = self._segments[:count], self._segments[count:]
        assert all(segment.file is None for segment in trimmed), "full segments are flushed"
        for segment in trimmed:
            self._look_ups.forget(segment)
        return trimmed

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

    async def _look_up(
        self, look_up: Callable[[Lend], FoundT], segment: Segment, offset: int
    ) -> FoundT:
        """Look something up in `segment`, at `offset`. Raises LogError."""
        try:
            return await self._look_ups.run(segment, look_up)
        except OSError as error:
            self._refuse_closed()
            if offset < self.start_offset:
                raise OffsetOutOfRangeError(offset, self.start_offset, self.end_offset) from error
            raise LogReadError(f"{segment.path}: {error}") from error


def _find_time(
    segment: Segment, bounds: Bounds, timestamp_ms: int, start: int, lend: Lend
) -> int | None:
    return segment.find_time(lend, bounds, timestamp_ms, start)


def _refuse_invalid(header: BatchHeader, size: int, first_part_size: int) -> None:
    if first_part_size < HEADER_SIZE:
        raise InvalidBatchError("a batch begins with its whole header")
    if header.size != size or size > MAX_SEGMENT_SPAN:
        raise InvalidBatchError(f"a batch of {size} bytes states {header.size}")
    if header.magic not in MAGICS or not 0 <= header.last_offset_delta < MAX_SEGMENT_SPAN:
        raise InvalidBatchError(
            f"magic {header.magic}, last offset delta {header.last_offset_delta}"
        )


def _unlink(files: FileSystem, segments: Sequence[Segment]) -> None:
    """Remove segments, the oldest first; what can't be removed is left to the next start."""
    try:
        for segment in segments:
            for path in (*segment.index.paths, segment.path):
                files.unlink(path)
    except OSError as error:
        logger.warning("a segment that was trimmed is still there: %s", error)
