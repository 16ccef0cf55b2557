"""The segments of a log: found by the names in its folder, and by an offset; their end."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from penstock.log.config import MAX_SEGMENT_SPAN
from penstock.log.index import SegmentIndex
from penstock.log.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from penstock.log.config import LogConfig
    from penstock.log.files import FileSystem

logger = logging.getLogger(__name__)

_LOG_NAME: Final = re.compile(r"(\d{20})\.log")


def segment_bases(sizes: dict[str, int]) -> list[int]:
    """Return the first offsets of the segments that the names in `sizes` tell of, ascending."""
    return sorted(int(found[1]) for name in sizes if (found := _LOG_NAME.fullmatch(name)))


def segment_path(directory: Path, base: int) -> Path:
    """Return the file of the segment that begins at an offset."""
    return directory / f"{base:020d}.log"


def open_segments(
    directory: Path,
    sizes: dict[str, int],
    config: LogConfig,
    files: FileSystem,
    max_leader_epoch: int,
) -> list[Segment]:
    """Return the segments that the names in `sizes` tell of, each as long as its file.

    A stored batch with a leader epoch above `max_leader_epoch` is damaged.
    """
    bases = segment_bases(sizes)
    segments = []
    for base, next_base in zip_longest(bases, bases[1:]):
        stem = directory / f"{base:020d}"
        index_sizes = (sizes.get(stem.name + ".index", 0), sizes.get(stem.name + ".timeindex", 0))
        index = SegmentIndex(files, stem, config.index_interval_bytes, index_sizes)
        segment = Segment(files, stem, base, index, max_leader_epoch=max_leader_epoch)
        segment.size = sizes[stem.name + ".log"]
        segment.end_offset = base + MAX_SEGMENT_SPAN if next_base is None else next_base
        assert segment.base_offset < segment.end_offset, "bases ascend"
        segments.append(segment)
    return segments


def remove_segments(files: FileSystem, segments: Iterable[Segment]) -> None:
    """Remove segments, the oldest first; what can't be removed is left to the next start."""
    try:
        for segment in segments:
            for path in (*segment.index.paths, segment.path):
                files.unlink(path)
    except OSError as error:
        logger.warning("a segment that was trimmed is still there: %s", error)


def segment_with(segments: Sequence[Segment], offset: int) -> Segment:
    """Return the segment that holds an offset, which is in one of them."""
    last = segments[-1]
    if offset >= last.base_offset:
        return last  # Where nearly all read.
    number = bisect_right(segments, offset, key=lambda each: each.base_offset) - 1
    assert number >= 0, "the first segment begins at the start offset"
    return segments[number]
