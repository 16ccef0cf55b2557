"""Where the next batch of a log goes: its offset and its place, before anything is written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.log.config import MAX_SEGMENT_SPAN, NEVER_MS, LogConfig
from penstock.log.errors import InvalidBatchError
from penstock.log.header import HEADER_SIZE, BatchHeader, stamp
from penstock.log.index import SegmentIndex
from penstock.log.rolling import SegmentAge, first_time
from penstock.log.scan import MAGICS
from penstock.log.segment import Segment
from penstock.log.writer import BATCHES_TOGETHER, LogWriter, QueuedBatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.recovery import Recovered
    from penstock.session import Buffer

logger = logging.getLogger(__name__)


class Appender:
    """Puts batches in line for the writer, and takes over what is written: only that can be read.

    All methods belong to the event loop's thread. `segments` are those that hold what is written.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        files: FileSystem,
        leader_epoch: int,
        recovered: Recovered,
    ) -> None:
        self._directory = directory
        self._config = config
        self._files = files
        self._leader_epoch = leader_epoch
        self.segments = recovered.segments
        self.end_offset = recovered.end_offset
        """The next offset to be given to a batch."""
        self.written_offset = recovered.end_offset
        """Everything below is written, and can be read."""
        self.written_bytes = 0
        """Since the log was opened."""
        self.unchecked_bytes = recovered.report.scanned_bytes
        """What no checkpoint vouches for; a full segment counts as enough for the next one."""
        self.failed_writes = 0
        """How often a write failed and was taken back."""
        self._written_segment = recovered.segments[-1] if recovered.is_extendable else None
        self._age = SegmentAge(config, self._first_time())
        self._active: Segment | None
        self._position: int
        self._failing_since: int | None = None
        """The bytes that were written when writes began to fail."""
        self.writer = LogWriter(directory, files, self._written_segment, self.end_offset)
        self._line: list[QueuedBatch] = []
        """Batches of one segment, to be handed over together."""
        self.handed_over_offset = self.end_offset
        """Everything below was handed over to the writer."""
        self._go_on_behind_what_is_written()

    @property
    def next_place(self) -> tuple[int, int]:
        """The base offset of the segment that takes the next batch, and the position in it."""
        if self._active is not None:
            return self._active.base_offset, self._position
        return (self.segments[-1].base_offset, self.segments[-1].size) if self.segments else (0, 0)

    def append(self, parts: Sequence[Buffer], header: BatchHeader) -> int:
        """Put one batch in line and return its base offset. Raises InvalidBatchError."""
        size = sum(map(len, parts))
        _refuse_invalid(header, size, len(parts[0]))
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        segment = self._active
        age = self._age
        is_aged = age.is_limited and age.is_over(header.max_timestamp, self._position)
        if segment is None or is_aged or self._is_full(segment, last_offset, size):
            segment = self._begin_segment(header.max_timestamp)
        stamp(parts[0], base_offset, self._leader_epoch)
        line = self._line
        if len(line) >= BATCHES_TOGETHER:
            line = self.hand_over()
        position, time, magic = self._position, header.max_timestamp, header.magic
        line.append(
            QueuedBatch(segment, position, parts, size, base_offset, last_offset, time, magic)
        )
        self._position = position + size
        self.unchecked_bytes += size
        self.end_offset = last_offset + 1
        assert self.written_offset <= base_offset < self.end_offset, "offsets only grow"
        return base_offset

    def hand_over(self) -> list[QueuedBatch]:
        """Leave to the writer what was appended; return where what comes next stands in line.

        What is handed over together goes into the file in one call, or none of it does.
        """
        if self._line:
            self.writer.queue.append(self._line)
            self._line = []
            self.handed_over_offset = self.end_offset
        return self._line

    def begin_segment(self) -> None:
        """Have a new segment take what comes, so that the last one can be removed like others."""
        if self._active is not None and self._position == 0:
            return
        segment = self._begin_segment()
        self._line.append(
            QueuedBatch(segment, 0, (), 0, self.end_offset, self.end_offset - 1, -1, 0)
        )

    def reconfigure(self, config: LogConfig) -> None:
        """From now on this holds, for the segment that takes batches too."""
        self._config = config
        self._age.reconfigure(config)

    def settle(self) -> OSError | None:
        """Take over what was written. Where a write has failed, also give up all that stood in
        line behind it, and return the error: the log ends where it ended before.
        """
        failure = self.writer.failure  # Looked at first: what was written before it is there then.
        written = self.writer.written
        while written:
            segment, file, size, end_offset, runs = written.popleft()
            if segment.file is not file:
                self._take_over(segment)
                segment.file = file
            for run in runs:
                segment.verified.add(*run)
            segment.size += size
            segment.end_offset = self.written_offset = end_offset
            self.written_bytes += size
        if failure is None:
            self._report_recovery()
            return None
        self._report_failure(failure)
        self.writer.queue.clear()
        self._line.clear()
        self._go_on_behind_what_is_written()
        self.writer.failure = None
        return failure

    def _take_over(self, segment: Segment) -> None:
        if segment is not self._written_segment:
            assert not self.segments or self.segments[-1].end_offset <= segment.base_offset
            self.segments.append(segment)
            self._written_segment = segment

    def _go_on_behind_what_is_written(self) -> None:
        self._active = self._written_segment
        self._position = 0 if self._active is None else self._active.size
        self.end_offset = self.handed_over_offset = self.written_offset

    def _report_failure(self, failure: OSError) -> None:
        self.failed_writes += 1
        if self._failing_since is None:
            logger.error(
                "%s: a write failed, and producers are refused until one succeeds: %s",
                *(self._directory, failure),
            )
        self._failing_since = self.written_bytes

    def _report_recovery(self) -> None:
        if self._failing_since is not None and self.written_bytes > self._failing_since:
            logger.warning("%s: writes succeed again", self._directory)
            self._failing_since = None

    def _is_full(self, segment: Segment, last_offset: int, size: int) -> bool:
        return self._position > 0 and (
            self._position + size > self._config.segment_bytes
            or last_offset - segment.base_offset >= MAX_SEGMENT_SPAN
        )

    def _first_time(self) -> int | None:
        if self._written_segment is None or self._config.segment_ms == NEVER_MS:
            return None
        return first_time(self._files, self._written_segment)

    def _begin_segment(self, first_ms: int | None = None) -> Segment:
        """Plan a new segment behind all that stands in line; the writer makes its file."""
        self._age.begin(first_ms)
        self.hand_over()
        stem = self._directory / f"{self.end_offset:020d}"
        index = SegmentIndex(self._files, stem, self._config.index_interval_bytes)
        segment = Segment(
            self._files, stem, self.end_offset, index, max_leader_epoch=self._leader_epoch
        )
        if self._active is not None and self._position > 0:
            self.unchecked_bytes = self._config.checkpoint_bytes
        self._active, self._position = segment, 0
        return segment


def _refuse_invalid(header: BatchHeader, size: int, first_part_size: int) -> None:
    if first_part_size < HEADER_SIZE:
        raise InvalidBatchError("a batch begins with its whole header")
    if header.size != size or size > MAX_SEGMENT_SPAN:
        raise InvalidBatchError(f"a batch of {size} bytes states {header.size}")
    if header.magic not in MAGICS or not 0 <= header.last_offset_delta < MAX_SEGMENT_SPAN:
        raise InvalidBatchError(
            f"magic {header.magic}, last offset delta {header.last_offset_delta}"
        )
