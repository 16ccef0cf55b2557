"""Opening a log: what the last owner left behind is checked, trimmed and told."""

from __future__ import annotations

import logging
import re
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.log.checkpoint import NAME, Checkpoint, read_checkpoint
from penstock.log.config import MAX_SEGMENT_SPAN
from penstock.log.index import SegmentIndex
from penstock.log.scan import CorruptRange, Place, scan
from penstock.log.segment import Segment

if TYPE_CHECKING:
    from penstock.log.config import LogConfig
    from penstock.log.files import FileSystem

logger = logging.getLogger(__name__)

_LOG_NAME: Final = re.compile(r"(\d{20})\.log")


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log found and did. A log that was closed cleanly leaves all of it empty."""

    scanned_bytes: int = 0
    truncated_bytes: int = 0
    corrupt: list[CorruptRange] = field(default_factory=list)
    rebuilt_indexes: list[Path] = field(default_factory=list)
    lost_checkpoint: bool = False
    """A checkpoint was there but didn't fit its checksum; the owner's state is gone with it."""


@dataclass(slots=True)
class Recovered:
    """A log's content, ready to be read and, at its end, written."""

    segments: list[Segment]
    end_offset: int
    is_extendable: bool
    """Whether the last segment can take the next batch; otherwise a new one has to."""

    checkpoint: Checkpoint
    report: RecoveryReport


def open_segments(
    directory: Path, sizes: dict[str, int], config: LogConfig, files: FileSystem
) -> list[Segment]:
    """Return the segments that the names in `sizes` tell of, each as long as its file."""
    bases = sorted(int(found[1]) for name in sizes if (found := _LOG_NAME.fullmatch(name)))
    segments = []
    for base, next_base in zip_longest(bases, bases[1:]):
        stem = directory / f"{base:020d}"
        index_sizes = (sizes.get(stem.name + ".index", 0), sizes.get(stem.name + ".timeindex", 0))
        index = SegmentIndex(files, stem, config.index_interval_bytes, index_sizes)
        segment = Segment(files, stem, base, index, max_leader_epoch=config.max_leader_epoch)
        segment.size = sizes[stem.name + ".log"]
        segment.end_offset = base + MAX_SEGMENT_SPAN if next_base is None else next_base
        segments.append(segment)
    return segments


class Recovery:
    """One run of recovery over one directory. Its methods may raise OSError."""

    def __init__(self, directory: Path, config: LogConfig, files: FileSystem) -> None:
        self._directory = directory
        self._files = files
        self._report = RecoveryReport()
        self._sizes = files.entries(directory)
        self._segments = open_segments(directory, self._sizes, config, files)
        self._known = self._read_checkpoint()

    def run(self) -> Recovered:
        """Bring the directory into order; blocks while it reads what no checkpoint vouches for."""
        ends = self._check_tail()
        end_offset, is_extendable = self._trim(ends)
        self._note_gaps(ends)
        self._check_indexes(ends)
        for segment in self._segments:
            self._report.corrupt += segment.corrupt.values()
        self._tell()
        return Recovered(self._segments, end_offset, is_extendable, self._known, self._report)

    def _read_checkpoint(self) -> Checkpoint:
        size = self._sizes.get(NAME)
        if size is None:
            return Checkpoint()
        found = read_checkpoint(self._files, self._directory, size)
        self._report.lost_checkpoint = found is None
        return found or Checkpoint()

    def _vouched(self, segment: Segment) -> int:
        """Return the position up to which the checkpoint vouches for the segment."""
        known = self._known
        if segment.base_offset < known.segment_base and segment is not self._segments[-1]:
            return segment.size
        if segment.base_offset == known.segment_base and known.position <= segment.size:
            return known.position
        return 0

    def _check_tail(self) -> dict[int, Place]:
        """Scan what nothing vouches for; return by base offset where each sound part ends."""
        return {
            segment.base_offset: self._check(segment)
            for segment in self._segments
            if self._vouched(segment) < segment.size or segment is self._segments[-1]
        }

    def _check(self, segment: Segment) -> Place:
        """Check and index a segment from its checkpoint on; return where its sound part ends."""
        vouched = self._vouched(segment)
        end = Place(vouched, self._known.offset if vouched else segment.base_offset)
        if vouched == segment.size:
            return end
        end = self._cut_index(segment, end)
        self._report.scanned_bytes += segment.size - end.position
        damage: list[CorruptRange] = []
        with segment.reading() as file:
            for found in scan(file, end, segment.bounds):
                if isinstance(found, CorruptRange):
                    damage.append(found)
                    continue
                for each in damage:  # Something sound follows it, so it is no torn end.
                    segment.note(each)
                damage.clear()
                segment.add_to_index(found)
                end = Place(found.position + found.header.size, found.header.next_offset)
        return end

    def _cut_index(self, segment: Segment, start: Place) -> Place:
        """Bring the index to what it was at `start`; return where indexing has to begin."""
        if start.position == 0:
            segment.index.clear()
            return start
        segment.index.cut(start.position, start.offset - segment.base_offset - 1)
        if segment.index.fits:
            return start
        self._report.rebuilt_indexes += segment.index.paths
        segment.index.clear()
        return Place(0, segment.base_offset)

    def _trim(self, ends: dict[int, Place]) -> tuple[int, bool]:
        """Cut off a torn end; return the offset to go on with, and whether in the last segment."""
        while self._segments and ends.get(self._segments[-1].base_offset, (1,))[0] == 0:
            self._remove(self._segments.pop())
        if not self._segments:
            return self._known.offset, False
        last = self._segments[-1]
        end = ends.get(last.base_offset, Place(last.size, last.end_offset))
        if end.position < last.size:
            self._truncate(last, end)
        last.end_offset = max(end.offset, self._known.offset)
        ends[last.base_offset] = end
        return last.end_offset, last.end_offset == end.offset

    def _remove(self, segment: Segment) -> None:
        self._report.truncated_bytes += segment.size
        for path in (segment.path, *segment.index.paths):
            if path.name in self._sizes or path is segment.path:
                self._files.unlink(path)

    def _truncate(self, segment: Segment, end: Place) -> None:
        self._report.truncated_bytes += segment.size - end.position
        with closing(self._files.open(segment.path, write=True)) as file:
            file.truncate(end.position)
        segment.size = end.position

    def _note_gaps(self, ends: dict[int, Place]) -> None:
        """Tell of offsets that should be at the end of a segment and aren't.

        They are never given out again: whoever asks for one gets the error of a damaged batch.
        """
        for segment in self._segments:
            end = ends.get(segment.base_offset)
            if end is not None and end.offset < segment.end_offset:
                gap = CorruptRange(end.position, segment.size, end.offset, segment.end_offset)
                segment.note(gap)

    def _check_indexes(self, ends: dict[int, Place]) -> None:
        """Save the indexes that were brought up to date, and rebuild those that don't fit."""
        for segment in self._segments:
            if segment.base_offset in ends and self._vouched(segment) < segment.size:
                segment.index.save()
                with closing(self._files.open(segment.path, write=True)) as file:
                    file.fdatasync()  # What was only in the page cache is read from now on.
            elif not self._has_index(segment):
                segment.rebuild_index()
                self._report.rebuilt_indexes += segment.index.paths

    def _has_index(self, segment: Segment) -> bool:
        paths = segment.index.paths
        return segment.index.fits and all(path.name in self._sizes for path in paths)

    def _tell(self) -> None:
        report = self._report
        if report.lost_checkpoint:
            logger.error("%s: the checkpoint is damaged; all was read anew", self._directory)
        if not self._segments and self._known.offset:
            logger.error(
                "%s: no segment is left of offsets below %d", self._directory, self._known.offset
            )
        if report.scanned_bytes:
            logger.info(
                "%s: recovered: checked %d bytes, cut off %d, %d damaged ranges",
                *(self._directory, report.scanned_bytes, report.truncated_bytes),
                len(report.corrupt),
            )
