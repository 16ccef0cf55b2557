"""One partition's log in files of its own folder."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.limits import FROM_FILE_BYTES
from penstock.log.appender import Appender
from penstock.log.batches import no_batches, whole_before
from penstock.log.checkpoint import Checkpoint
from penstock.log.commit import Flusher, GroupCommit
from penstock.log.config import LogConfig
from penstock.log.errors import (
    CorruptBatchError,
    LogClosedError,
    LogError,
    LogFailedError,
    LogReadError,
    LogWriteError,
    OffsetOutOfRangeError,
)
from penstock.log.header import HEADER_SIZE, BatchHeader, read_header, walk
from penstock.log.interface import Outcome, SavedState
from penstock.log.look_ups import LookUps
from penstock.log.recovery import Recovered, Recovery
from penstock.log.rounds import Round
from penstock.log.scan import Bounds, Place
from penstock.log.segment import Segment
from penstock.log.segments import remove_segments, segment_with
from penstock.log.states import States

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.batches import Batches, StoredBatch
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
        self._appender = Appender(directory, config, files, leader_epoch, recovered)
        self._segments = self._appender.segments
        self._found_bytes = sum(segment.size for segment in self._segments)
        """Of all that was there when the log was opened, less what was trimmed since."""
        self.recovery = recovered.report
        self.start_offset = recovered.start_offset
        """The first offset that can be read."""
        self._trimmed_to = recovered.start_offset
        """Up to where the trim is durable."""
        self._checkpoint = recovered.checkpoint
        self._states = States(directory, recovered.checkpoint.states)
        self._commit = GroupCommit(
            *(str(directory), flusher, self._appender, self._begin_round),
            config.flush_interval_seconds,
        )
        self._commit.concluded = self._conclude_round
        self._lacks_checkpoint = False
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
        log = cls(directory, config, files, flusher, leader_epoch, recovered)
        if not recovered.checkpoint.offset:
            # Without a checkpoint nothing says whether the log's own name is durable.
            log._appender.writer.name_again({directory.parent})
        return log

    @classmethod
    def new(
        cls,
        directory: Path,
        config: LogConfig,
        files: FileSystem,
        flusher: Flusher,
        leader_epoch: int = 0,
    ) -> LocalLog:
        """Return the log of a directory that was made for it just now, durably, and is empty."""
        return cls(directory, config, files, flusher, leader_epoch, Recovered.nothing())

    @property
    def end_offset(self) -> int:
        """The next offset to be given to a batch."""
        return self._appender.end_offset

    @property
    def written_offset(self) -> int:
        """Everything below is written, and can be read."""
        return self._appender.written_offset

    @property
    def written_bytes(self) -> int:
        return self._appender.written_bytes

    @property
    def failed_writes(self) -> int:
        """How often a write failed and was taken back since the log was opened."""
        return self._appender.failed_writes

    @property
    def failure(self) -> LogError | None:
        """Why the log takes no more writes, if it takes none."""
        return self._commit.failure

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
        return self._found_bytes + self._appender.written_bytes

    def bytes_from(self, offset: int) -> int:
        """Return at most how many bytes are stored from `offset` on, as `Log` says."""
        if self._segments and offset >= self._segments[-1].base_offset:
            return self._look_ups.bytes_from(self._segments[-1], offset)
        return self.size_bytes

    @property
    def files(self) -> list[Path]:
        """The files at both ends of the log; they are there as long as it is open."""
        return [self._segments[0].path, self._segments[-1].path] if self._segments else []

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def full_segment_ends(self) -> list[int]:
        return [segment.end_offset for segment in self._segments[:-1]]

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

    def watch(self, advanced: Callable[[], None], cut: Callable[[int], None]) -> None:
        """Have the callers' functions called when more is safe or less is there, as `Log` says."""
        self._commit.advanced, self._commit.cut = advanced, cut

    def append(self, parts: Sequence[Buffer], header: BatchHeader) -> int:
        """Put one batch in line to be written and return its base offset, as `Log` says."""
        self._refuse_unless_writable()
        base_offset = self._appender.append(parts, header)
        if self._appender.unchecked_bytes >= self._config.checkpoint_bytes:
            self._commit.ask()
        else:
            self._commit.write()
        return base_offset

    def written(self, offset: int) -> Outcome:
        """Done when the operating system has `offset`; fails with LogError, as `Log` says."""
        assert offset < self.end_offset, "only what was appended can be written"
        return self._commit.written(offset)

    def flushed(self, offset: int) -> Outcome:
        """Done when `offset` is on stable storage; fails with LogError, as `Log` says."""
        assert offset < self.end_offset, "only what was appended can be flushed"
        return self._commit.reach(offset)

    def flush_soon(self, *, at_once: bool = False) -> None:
        """Have what was appended flushed within the flush interval."""
        if at_once:
            self._commit.ask()
        else:
            self._commit.ask_soon()

    async def read(self, offset: int, max_bytes: int, end: int | None = None) -> Batches:
        """Return whole batches, all of one segment, as `Log` says."""
        if end is None:
            await self._all_written()
            end = self.written_offset
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

    def passed(self, offset: int) -> None:
        """A reader goes on at `offset`, as `Log` says."""
        if offset == self.written_offset and self._segments:
            self._look_ups.remember(Place(self._segments[-1].size, offset))

    def sound_range(
        self, offset: int, max_bytes: int, magic: int, end: int | None = None
    ) -> FileRange | None:
        """Return whole batches as a range of a file, as `Log` says."""
        found = self._sound_places(offset, max_bytes, magic, end)
        try:
            return None if found is None else self._look_ups.range_of(*found)
        except OSError:
            return None  # There is no descriptor to be had; a read says so where it fails as well.

    def sound_batches(
        self, offset: int, max_bytes: int, max_records: int, magic: int, end: int | None = None
    ) -> list[StoredBatch]:
        """Return whole batches as ranges of a file, as `Log` says."""
        found = self._sound_places(offset, max_bytes, magic, end)
        try:
            return [] if found is None else self._look_ups.batches_of(*found, max_records)
        except OSError:
            return []

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end."""
        batches = await self.read(offset, HEADER_SIZE)
        return read_header(batches.data) if batches.data else None

    async def headers(
        self, start: int, end: int | None = None
    ) -> AsyncGenerator[BatchHeader, None]:
        """Yield the headers of the batches that hold `start` up to `end`, but for damaged ones."""
        await self._all_written()
        end = self.written_offset if end is None else min(end, self.written_offset)
        while start < end:
            try:
                batches = await self.read(start, _HEADERS_READ_BYTES, self.written_offset)
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
        for segment in tuple(self._segments):
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
        self._appender.unchecked_bytes = self._config.checkpoint_bytes
        await self._commit.whole_round()
        self._trimmed_to = max(self._trimmed_to, offset)
        assert self._trimmed_to <= self.start_offset, "what is durable was given up before"
        remove = partial(remove_segments, self._files, self._take_trimmed())
        await self._flusher.run(remove)

    async def finish(self) -> None:
        """Flush and write a checkpoint off the loop, so that `close` finds nothing left to do."""
        self._refuse_unless_writable()
        if self._is_checkpointed:
            await self._commit.reach(self.end_offset - 1)
        else:
            self._appender.unchecked_bytes = self._config.checkpoint_bytes
            await self._commit.whole_round()

    def close(self) -> None:
        """Flush, write a checkpoint so that the next start reads nothing, and close. Blocks."""
        if self._is_closed:
            return
        self._commit.settle()
        try:
            if self._commit.failure is None and not self._is_checkpointed:
                self._appender.unchecked_bytes = self._config.checkpoint_bytes
                self._commit.run_now()
        except (LogFailedError, LogWriteError):
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
        known = self._checkpoint.start_offset, self._checkpoint.offset
        is_whole = known == (self.start_offset, self.end_offset)
        # Of a log without a batch there is no state to keep.
        return is_whole and (self._states.are_kept or not self.end_offset)

    def _release(self) -> None:
        self._is_closed = True
        self._appender.settle()
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

    async def _all_written(self) -> None:
        """Return when all that was appended is written, or was refused."""
        if self.written_offset < self.end_offset:
            with suppress(LogError):
                await self._commit.written(self.end_offset - 1)

    def _begin_round(self) -> Round:
        """Put together what makes everything appended so far durable."""
        checkpoint = None
        # The first one says that something was written: a log of which all is lost is no new one.
        is_first = self.end_offset > 0 == self._checkpoint.offset
        if is_first or self._appender.unchecked_bytes >= self._config.checkpoint_bytes:
            checkpoint = self._next_checkpoint()
            self._appender.unchecked_bytes = 0
        return Round(self._files, self.directory, self._appender.writer, checkpoint)

    def _conclude_round(self, round_: Round) -> None:
        """Remember what the round has kept, and close the segments that it was the last to use."""
        if round_.checkpoint is not None:
            self._conclude_checkpoint(round_.checkpoint, round_.checkpoint_error)
        for segment in round_.full:
            if segment.file is not None:
                segment.file.close()
                segment.file = None

    def _conclude_checkpoint(self, checkpoint: Checkpoint, error: OSError | None) -> None:
        if error is None:
            self._checkpoint = checkpoint
            self._states.keep(checkpoint.states)
        elif not self._lacks_checkpoint:
            logger.warning("%s: no checkpoint can be written: %s", self.directory, error)
        self._lacks_checkpoint = error is not None

    def _next_checkpoint(self) -> Checkpoint:
        assert self._checkpoint.offset <= self.end_offset, "no flushed batch is taken back"
        states = self._states.take(self.end_offset)
        return Checkpoint(self.end_offset, *self._appender.next_place, self.start_offset, states)

    def _move_start(self, offset: int) -> None:
        """Let nothing below `offset` be read any more."""
        assert offset <= self.end_offset, "what is not there can't be given up"
        if offset <= self.start_offset:
            return
        if offset == self.end_offset:
            self._appender.begin_segment()
        self.start_offset = offset
        self._look_ups.forget_below(offset)

    def _take_trimmed(self) -> list[Segment]:
        """Return the segments that were trimmed durably, which the log forgets with that."""
        last = max(len(self._segments) - 1, 0)
        ends = [segment.end_offset for segment in self._segments[:last]]
        count = bisect_right(ends, self._trimmed_to)
        trimmed = self._segments[:count]
        del self._segments[:count]
        self._found_bytes -= sum(segment.size for segment in trimmed)
        assert all(segment.file is None for segment in trimmed), "full segments are flushed"
        for segment in trimmed:
            self._look_ups.forget(segment)
        return trimmed

    def _segment_at(self, offset: int) -> Segment | None:
        """Return the segment that holds `offset`; None at the end of the log."""
        self._refuse_closed()
        if self.written_offset <= offset <= self.end_offset:
            return None
        if not self.start_offset <= offset < self.end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, self.end_offset)
        return segment_with(self._segments, offset)

    def _sound_places(
        self, offset: int, max_bytes: int, magic: int, end: int | None
    ) -> tuple[Segment, Place, Place] | None:
        """Return where sound batches begin and end, if there are enough of them."""
        end = self.end_offset if end is None else end
        segment = self._segment_at(offset)
        if segment is None or offset >= end:
            return None
        start = self._look_ups.place_of(segment, offset)
        if start is None or segment.size - start.position < FROM_FILE_BYTES:
            return None
        following = segment.sound_range(start, max_bytes, end, magic)
        if following is None or following.position - start.position < FROM_FILE_BYTES:
            return None
        return segment, start, following

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
