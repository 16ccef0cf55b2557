"""Reading a log's files from another process, while its broker may be writing them.

Nothing is modified, locked or mapped. The caller knows from the broker up to where the log is
committed; what lies beyond, a half-written batch say, is never looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.log.config import LogConfig
from penstock.log.errors import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.files import FileSystem, RealFileSystem
from penstock.log.header import walk
from penstock.log.recovery import open_segments
from penstock.log.scan import Place

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.segment import Segment


def read_range(
    directory: Path,
    start: int,
    end: int,
    *,
    chunk_bytes: int = 4 << 20,
    config: LogConfig | None = None,
    files: FileSystem | None = None,
) -> Iterator[memoryview]:
    """Yield the stored batches that hold the offsets from `start` up to, but without, `end`.

    Each view is of whole batches, at most `chunk_bytes` long unless a single batch is longer, and
    is the caller's to keep. The first batch may begin before `start`, the last may end after `end`.
    Every checksum is verified. Raises OffsetOutOfRangeError where no segment holds `start`,
    CorruptBatchError at a damaged or missing batch (what precedes it was yielded; its
    `next_offset` is where to go on) and OSError, such as when a segment is deleted meanwhile.
    The broker has the last word in each of these cases.
    """
    assert 0 <= start <= end, "a range runs forward"
    files = files or RealFileSystem()
    segments = open_segments(directory, files.entries(directory), config or LogConfig(), files)
    first = segments[0].base_offset if segments else end
    if start < first and start < end:
        raise OffsetOutOfRangeError(start, first, end)
    number = bisect_right(segments, start, key=lambda each: each.base_offset) - 1
    for segment in segments[max(number, 0) :]:
        if segment.base_offset >= end:
            return
        yield from _read_segment(segment, max(start, segment.base_offset), end, chunk_bytes)


def _read_segment(
    segment: Segment, offset: int, end: int, chunk_bytes: int
) -> Iterator[memoryview]:
    place: Place | None = None
    while offset < min(end, segment.end_offset):
        try:
            data, place = segment.read(offset, chunk_bytes, place)
        except CorruptBatchError as damage:
            next_offset = min(damage.next_offset, end)
            raise CorruptBatchError(
                damage.base_offset, next_offset, damage.path, damage.position
            ) from None
        assert place.offset > offset, "a read moves on"
        offset = place.offset
        yield data if offset <= end else _before(data, end)


def _before(data: memoryview, end: int) -> memoryview:
    """Return the batches that begin below `end`."""
    for position, header in walk(data):
        if header.base_offset >= end:
            return data[:position]
    return data
