"""One partition's log in files of its own folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from penstock.log.appender import Appender
from penstock.log.checkpoint import Checkpoint
from penstock.log.commit import Flusher, GroupCommit
from penstock.log.config import LogConfig
from penstock.log.contents import Contents
from penstock.log.errors import (
    LogError,
    LogFailedError,
    LogWriteError,
    OffsetOutOfRangeError,
)
from penstock.log.header import HEADER_SIZE, BatchHeader, read_header
from penstock.log.interface import Outcome, SavedState
from penstock.log.look_ups import LookUps
from penstock.log.recovery import Recovered, Recovery
from penstock.log.removal import Removal
from penstock.log.rewriting import SegmentRewriting
from penstock.log.rounds import Round
from penstock.log.states import States
from penstock.log.walking import stored_batches

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.batches import Batches, StoredBatch
    from penstock.log.files import FileSystem
    from penstock.log.interface import Rewriting, SegmentExtent, StoredSegment
    from penstock.log.pieces import State
    from penstock.session import Buffer, FileRange

logger = logging.getLogger(__name__)


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
        self._removal = Removal(files, flusher)
        self._look_ups = LookUps(files, flusher.readers)
        self._appender = Appender(directory, config, files, leader_epoch, recovered)
        self._contents = Contents(directory, self._appender, self._look_ups, recovered.start_offset)
        self._segments = self._contents.segments
        self.recovery = recovered.report
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
        self._removing = asyncio.Lock()
        """Of whoever takes full segments away, or puts others in their place."""
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
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._contents.start_offset

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
        return self._contents.size_bytes

    def bytes_from(self, offset: int) -> int:
        """Return at most how many bytes are stored from `offset` on, as `Log` says."""
        return self._contents.bytes_from(offset)

    @property
    def files(self) -> list[Path]:
        """The files at both ends of the log; they are there as long as it is open."""
        return [self._segments[0].path, self._segments[-1].path] if self._segments else []

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def replacements(self) -> int:
        return self._contents.replacements

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

    def register_state(self, name: str, snapshot: Callable[[], State]) -> SavedState:
        """Keep an owner's state in the checkpoints, as `Log` says."""
        kept = self._states.register(name, snapshot)
        return SavedState(bytes(kept.state), max(kept.offset, self.start_offset))

    def keep_states(self) -> None:
        """Have the states of owners in the next checkpoint, as `Log` says."""
        self._appender.unchecked_bytes = self._config.checkpoint_bytes

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
        return await self._contents.read(offset, max_bytes, end)

    def passed(self, offset: int) -> None:
        """A reader goes on at `offset`, as `Log` says."""
        self._contents.passed(offset)

    def sound_range(
        self, offset: int, max_bytes: int, magic: int, end: int | None = None
    ) -> FileRange | None:
        """Return whole batches as a range of a file, as `Log` says."""
        return self._contents.sound_range(offset, max_bytes, magic, end)

    def sound_batches(
        self, offset: int, max_bytes: int, max_records: int, magic: int, end: int | None = None
    ) -> list[StoredBatch]:
        """Return whole batches as ranges of a file, as `Log` says."""
        return self._contents.sound_batches(offset, max_bytes, max_records, magic, end)

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end."""
        batches = await self.read(offset, HEADER_SIZE)
        return read_header(batches.data) if batches.data else None

    def batches(self, start: int, end: int) -> AsyncGenerator[tuple[BatchHeader, memoryview], None]:
        """Yield batches and their headers, as `Log` says."""
        return stored_batches(self, start, end)

    async def headers(
        self, start: int, end: int | None = None
    ) -> AsyncGenerator[BatchHeader, None]:
        """Yield the headers of the batches that hold `start` up to `end`, but for damaged ones."""
        await self._all_written()
        end = self.written_offset if end is None else min(end, self.written_offset)
        async with aclosing(self.batches(start, end)) as batches:
            async for header, _ in batches:
                yield header

    async def find_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset of the first batch whose highest timestamp is at least that."""
        return await self._contents.find_time(timestamp_ms)

    @property
    def segment_extents(self) -> list[SegmentExtent]:
        return self._contents.segment_extents

    def stored_segments(self) -> AsyncGenerator[StoredSegment, None]:
        """Yield the segments that hold something, the oldest first, as `Log` says."""
        return self._contents.stored_segments()

    async def bytes_behind(self, offset: int) -> int:
        """Return how many bytes are stored from the batch with `offset` on, as `Log` says."""
        return await self._contents.bytes_behind(offset)

    def reconfigure(self, config: LogConfig) -> None:
        """Take sizes and ages of segments, and the delay of their removal, from `config`."""
        self._config = config
        self._appender.reconfigure(config)

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
        self._contents.move_start(offset)
        self._appender.unchecked_bytes = self._config.checkpoint_bytes
        await self._commit.whole_round()
        self._trimmed_to = max(self._trimmed_to, offset)
        assert self._trimmed_to <= self.start_offset, "what is durable was given up before"
        async with self._removing:
            trimmed = self._contents.take_below(self._trimmed_to)
            await self._removal.remove(trimmed, self._config.file_delete_delay_ms)

    async def roll(self) -> None:
        """Have a new segment take what comes, as `Log` says."""
        self._refuse_unless_writable()
        if self.end_offset > self.start_offset:
            self._appender.begin_segment()
            self._appender.unchecked_bytes = self._config.checkpoint_bytes
            await self._commit.whole_round()

    async def rewriting(self, start: int, end: int) -> Rewriting | None:
        """Return how the full segments from `start` to `end` are written anew, as `Log` says."""
        self._refuse_unless_writable()
        sources = self._contents.segments_between(start, end)
        if not sources:
            return None
        if self._checkpoint.segment_base < end:
            # Recovery reads on from a place in the checkpoint, which must not be in one of these.
            self._appender.unchecked_bytes = self._config.checkpoint_bytes
            await self._commit.whole_round()
        if self._checkpoint.segment_base < end:
            return None
        files = self._files
        return SegmentRewriting(self.directory, files, self._config, sources, self.leader_epoch)

    async def replace(self, rewriting: Rewriting) -> bool:
        """Put what was written anew in its place, as `Log` says."""
        assert isinstance(rewriting, SegmentRewriting), "this log has made it"
        async with self._removing:
            self._refuse_unless_writable()
            sources = self._contents.segments_between(rewriting.start, rewriting.end)
            if tuple(sources) != rewriting.sources:
                await self._flusher.run(rewriting.discard)
                return False
            async with self._look_ups.barring():
                try:
                    await self._flusher.run(rewriting.put)
                except OSError as error:
                    if rewriting.has_begun:
                        logger.exception("%s: segments can't be replaced", self.directory)
                        self._commit.fail(LogFailedError(f"{self.directory}: {error}"))
                    raise LogWriteError.of(error) from error
                self._contents.replace(sources, rewriting.replaced)
        return True

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
        if self._contents.is_closed:
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
        self._contents.is_closed = True
        self._commit.close()
        if self._commit.is_idle:
            self._release()

    async def released(self) -> None:
        """Return when nothing uses the files of a log that was abandoned."""
        await self._commit.idle()
        async with self._removing:
            self._release()

    @property
    def _is_checkpointed(self) -> bool:
        known = self._checkpoint.start_offset, self._checkpoint.offset
        is_whole = known == (self.start_offset, self.end_offset)
        is_whole = is_whole and self._appender.unchecked_bytes < self._config.checkpoint_bytes
        # Of a log without a batch there is no state to keep.
        return is_whole and (self._states.are_kept or not self.end_offset)

    def _release(self) -> None:
        self._contents.is_closed = True
        self._appender.settle()
        self._commit.close()
        self._contents.close()
        self._removal.close()

    def _refuse_unless_writable(self) -> None:
        # A log that is closed has failed, too.
        if self._commit.failure is not None:
            self._contents.refuse_closed()
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
