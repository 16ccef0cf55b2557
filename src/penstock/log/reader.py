"""Reading a log's files from another process, while its broker may be writing them.

Nothing is modified, locked or mapped. The caller knows from the broker up to where the log is
committed; what lies beyond, a half-written batch say, is never looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.log.config import MAX_SEGMENT_SPAN, LogConfig
from penstock.log.errors import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.files import FileSystem, RealFileSystem
from penstock.log.reading import lending
from penstock.log.segments import open_segments

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.reading import Lend
    from penstock.log.scan import Place
    from penstock.log.segment import Segment

_ANY_EPOCH: Final = (1 << 31) - 1
"""Only its owner knows at which leader epoch a log was opened last."""


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
    sizes = files.entries(directory)
    segments = open_segments(directory, sizes, config or LogConfig(), files, _ANY_EPOCH)
    first = segments[0].base_offset if segments else end
    if start < first and start < end:
        raise OffsetOutOfRangeError(start, first, end)
    number = bisect_right(segments, start, key=lambda each: each.base_offset) - 1
    for segment in segments[max(number, 0) :]:
        if segment.base_offset >= end:
            return
        with lending(files) as lend:
            first_offset = max(start, segment.base_offset)
            yield from _read_segment(segment, lend, first_offset, end, chunk_bytes)


def _read_segment(
    segment: Segment, lend: Lend, offset: int, end: int, chunk_bytes: int
) -> Iterator[memoryview]:
    place: Place | None = None
    while offset < min(end, segment.end_offset):
        try:
            batches, place = segment.read(lend, segment.bounds, offset, chunk_bytes, place, end)
        except CorruptBatchError as damage:
            # How far the last segment goes is known to nobody here.
            is_known = damage.next_offset < segment.base_offset + MAX_SEGMENT_SPAN
            next_offset = damage.next_offset if is_known else end
            where = damage.path, damage.position, damage.end_position
            raise CorruptBatchError(damage.base_offset, next_offset, *where) from None
        assert place.offset > offset, "a read moves on"
        offset = place.offset
        yield batches.data
