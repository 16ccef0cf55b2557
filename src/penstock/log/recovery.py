"""Opening a log: what the last owner left behind is checked, cut off where torn, and reported."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.log.checkpoint import NAME, Checkpoint, read_checkpoint, remove_lost_states
from penstock.log.errors import LogMissingError
from penstock.log.reading import lending
from penstock.log.replacement import finish_replacements
from penstock.log.scan import CorruptRange, Place, scan
from penstock.log.segments import open_segments

if TYPE_CHECKING:
    from penstock.log.config import LogConfig
    from penstock.log.files import FileSystem
    from penstock.log.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log found and did. A log that was closed cleanly leaves all of it empty."""

    scanned_bytes: int = 0
    truncated_bytes: int = 0
    corrupt: list[CorruptRange] = field(default_factory=list)
    rebuilt_indexes: list[Path] = field(default_factory=list)
    lost_checkpoint: bool = False
    """A checkpoint was there but didn't fit its checksum; the owners' states are gone with it."""


@dataclass(slots=True)
class Recovered:
    """A log's content, ready to be read and, at its end, written."""

    segments: list[Segment]
    start_offset: int
    end_offset: int
    is_extendable: bool
    """Whether the last segment can take the next batch; otherwise a new one has to."""

    checkpoint: Checkpoint
    report: RecoveryReport

    @classmethod
    def nothing(cls) -> Recovered:
        """What there is to recover of a log that never was."""
        return cls([], 0, 0, False, Checkpoint(), RecoveryReport())


class Recovery:
    """One run of recovery over one directory. Its methods may raise OSError."""

    def __init__(
        self, directory: Path, config: LogConfig, files: FileSystem, leader_epoch: int
    ) -> None:
        self._directory = directory
        self._files = files
        self._report = RecoveryReport()
        self._sizes = files.entries(directory)
        if finish_replacements(files, directory, self._sizes):
            self._sizes = files.entries(directory)
        self._segments = open_segments(directory, self._sizes, config, files, leader_epoch)
        self._known = self._read_checkpoint()
        self._ends: dict[Segment, Place] = {}
        """Where the sound part ends, of each segment that was scanned."""

    def run(self) -> Recovered:
        """Bring the directory into order; blocks while it reads what no checkpoint vouches for.

        Raises LogMissingError, and has changed nothing then.
        """
        self._refuse_missing()
        self._remove_trimmed()
        for segment in self._segments:
            if self._vouched(segment) < segment.size:
                self._ends[segment] = self._check(segment)
        end_offset, is_extendable = self._cut_torn_end()
        self._note_gaps()
        self._make_durable()
        self._check_indexes()
        for segment in self._segments:
            self._report.corrupt += segment.corrupt.values()
        self._log_report()
        first = self._segments[0].base_offset if self._segments else end_offset
        start_offset = max(first, self._known.start_offset)
        if end_offset < start_offset:  # The files were cut, and all that is left was trimmed.
            end_offset, is_extendable = start_offset, False
        return Recovered(
            *(self._segments, start_offset, end_offset),
            *(is_extendable, self._known, self._report),
        )

    def _read_checkpoint(self) -> Checkpoint:
        size = self._sizes.get(NAME)
        if size is None:
            return Checkpoint()
        found = read_checkpoint(self._files, self._directory, size)
        self._report.lost_checkpoint = found is None
        return found or Checkpoint()

    def _refuse_missing(self) -> None:
        """A log that was written has a checkpoint, which says where it begins."""
        known = self._known
        if self._report.lost_checkpoint:
            return
        first = self._segments[0].base_offset if self._segments else known.offset
        if first > known.start_offset:
            raise LogMissingError(
                f"{self._directory}: offsets {known.start_offset}..{first - 1} are missing: no "
                "segment that is left holds them; `penstock recover` shows what can be done"
            )

    def _remove_trimmed(self) -> None:
        """Finish what a crash cut short: the removal of segments below the start offset, and of
        states that no checkpoint has.
        """
        remove_lost_states(self._files, self._directory, self._sizes, self._known)
        start_offset = self._known.start_offset
        while len(self._segments) > 1 and self._segments[1].base_offset <= start_offset:
            self._unlink(self._segments.pop(0))

    def _vouched(self, segment: Segment) -> int:
        """Return the position up to which the checkpoint vouches for the segment."""
        known = self._known
        if segment.base_offset < known.segment_base and segment is not self._segments[-1]:
            return segment.size
        if segment.base_offset == known.segment_base and known.position <= segment.size:
            return known.position
        return 0

    def _check(self, segment: Segment) -> Place:
        """Check and index a segment from its checkpoint on; return where its sound part ends."""
        end = self._checkpoint_in(segment)
        # After a failed flush, the cache may hold what never reached the disk.
        self._files.forget_cache(segment.path)
        self._cut_index(segment, end)
        self._report.scanned_bytes += segment.size - end.position
        damage: list[CorruptRange] = []
        with lending(self._files) as lend:
            for found in scan(lend(segment.path), end, segment.bounds):
                if isinstance(found, CorruptRange):
                    damage.append(found)
                    continue
                for each in damage:  # Something sound follows it, so it is no torn end.
                    segment.note(each)
                damage.clear()
                segment.add_to_index(found)
                end = Place(found.position + found.header.size, found.header.next_offset)
        return end

    def _checkpoint_in(self, segment: Segment) -> Place:
        position = self._vouched(segment)
        return Place(position, self._known.offset if position else segment.base_offset)

    def _cut_index(self, segment: Segment, end: Place) -> None:
        """Bring the index to what it was when the segment ended at `end`."""
        if end.position == 0:
            segment.index.clear()
            return
        if self._has_index(segment):
            segment.index.cut(end.position, end.offset - segment.base_offset - 1)
            segment.check_index_before(end)
        else:
            segment.index.fits = False
        if not segment.index.fits:
            segment.rebuild_index(end)
            self._report.rebuilt_indexes += segment.index.paths

    def _cut_torn_end(self) -> tuple[int, bool]:
        """Cut off a torn end; return the offset to go on with, and whether in the last segment."""
        while self._segments and self._is_empty(self._segments[-1]):
            self._report.truncated_bytes += self._segments[-1].size
            self._unlink(self._segments.pop())
        if not self._segments:
            return self._known.offset, False
        last = self._segments[-1]
        if last not in self._ends and self._vouched(last) < last.size:
            self._ends[last] = self._check(last)  # It was not the last one when vouched for.
        end = self._ends.get(last) or self._checkpoint_in(last)
        if end.position < last.size:
            self._truncate(last, end)
        last.end_offset = max(end.offset, self._known.offset)
        assert end.offset >= last.base_offset, "a segment that is kept has a sound batch"
        return last.end_offset, last.end_offset == end.offset

    def _is_empty(self, segment: Segment) -> bool:
        return segment.size == 0 or (segment in self._ends and self._ends[segment].position == 0)

    def _unlink(self, segment: Segment) -> None:
        for path in (segment.path, *segment.index.paths):
            if path.name in self._sizes or path is segment.path:
                self._files.unlink(path)

    def _truncate(self, segment: Segment, end: Place) -> None:
        assert end.position >= self._vouched(segment), "what was safe is not cut off"
        self._report.truncated_bytes += segment.size - end.position
        with closing(self._files.open(segment.path, write=True)) as file:
            file.truncate(end.position)
        segment.size = end.position

    def _note_gaps(self) -> None:
        """Note offsets that should be at the end of a segment and aren't.

        They are never given out again: whoever asks for one gets the error of a damaged batch.
        """
        for segment in self._segments:
            end = self._ends.get(segment) or self._checkpoint_in(segment)
            is_judged = segment in self._ends or segment is self._segments[-1]
            if is_judged and end.offset < segment.end_offset:
                gap = CorruptRange(end.position, segment.size, end.offset, segment.end_offset)
                segment.note(gap)

    def _make_durable(self) -> None:
        """Flush what was only in the page cache: from now on it is read and built upon."""
        for segment in self._ends:
            if segment in self._segments:
                segment.index.save()
                with closing(self._files.open(segment.path, write=True)) as file:
                    file.fdatasync()
        if self._report.scanned_bytes:
            self._files.sync_directory(self._directory)
            self._files.sync_directory(self._directory.parent)

    def _check_indexes(self) -> None:
        for segment in self._segments:
            if segment not in self._ends and not self._has_index(segment):
                segment.rebuild_index()
                self._report.rebuilt_indexes += segment.index.paths

    def _has_index(self, segment: Segment) -> bool:
        paths = segment.index.paths
        return segment.index.fits and all(path.name in self._sizes for path in paths)

    def _log_report(self) -> None:
        report = self._report
        assert report.truncated_bytes <= sum(self._sizes.values()), "no more than was there"
        if report.lost_checkpoint:
            logger.error("%s: the checkpoint is damaged; all was read anew", self._directory)
        if report.scanned_bytes:
            logger.info(
                "%s: recovered: checked %d bytes, cut off %d, %d damaged ranges",
                *(self._directory, report.scanned_bytes, report.truncated_bytes),
                len(report.corrupt),
            )
