"""How large the segments of a log are, and how old: what retention goes by, the oldest first."""

from __future__ import annotations

import struct
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from penstock.log.checkpoint import NAME, Checkpoint, read_checkpoint
from penstock.log.interface import OldestSegment, StoredSegment
from penstock.log.segment import UNSURE_MS
from penstock.log.segments import segment_bases, segment_path

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.reading import Lend
    from penstock.log.scan import Bounds
    from penstock.log.segment import Segment

FoundT = TypeVar("FoundT")

_TIME_ENTRY: Final = struct.Struct(">qi")


class LookUp(Protocol):
    """Looks something up in a segment; raises LogError."""

    async def __call__(
        self, look_up: Callable[[Lend], FoundT], segment: Segment, offset: int
    ) -> FoundT: ...


async def stored_segments(
    segments: Sequence[Segment], look_up: LookUp
) -> AsyncGenerator[StoredSegment, None]:
    """Yield the segments that hold something. Nothing is looked up of those that nobody asks for.

    Raises LogError.
    """
    for segment in segments:
        if segment.size:
            latest_ms = segment.known_latest_ms
            is_active = segment is segments[-1]
            if latest_ms is None or is_active:
                ask = partial(_latest, segment, segment.bounds)
                latest_ms = await look_up(ask, segment, segment.base_offset)
                segment.known_latest_ms = latest_ms if latest_ms < UNSURE_MS else None
            end_offset, size = segment.end_offset, segment.size
            yield StoredSegment(segment.base_offset, end_offset, size, latest_ms, is_active)


def oldest_segment(files: FileSystem, directory: Path) -> OldestSegment:
    """Look into the folder of a closed log, which stays as it is. Blocks; raises OSError."""
    sizes = files.entries(directory)
    known = read_checkpoint(files, directory, sizes[NAME]) if NAME in sizes else None
    start_offset = (known or Checkpoint()).start_offset
    bases = [base for base in segment_bases(sizes) if sizes[segment_path(directory, base).name]]
    # What is trimmed already, and its removal was cut short, is no matter of retention.
    trimmed = sum(1 for _, following in pairwise(bases) if following <= start_offset)
    bases = bases[trimmed:]
    size = sum(sizes[segment_path(directory, base).name] for base in bases)
    if not bases:
        return OldestSegment(0, None)
    path = segment_path(directory, bases[0])
    end_offset = bases[1] if len(bases) > 1 else max(bases[0], (known or Checkpoint()).offset)
    latest_ms = _last_entry(files, path.with_suffix(".timeindex"), sizes)
    if latest_ms < 0:
        latest_ms = files.modified_ms(path)
    segment = StoredSegment(bases[0], end_offset, sizes[path.name], latest_ms, len(bases) == 1)
    return OldestSegment(size, segment)


def _latest(segment: Segment, bounds: Bounds, lend: Lend) -> int:
    return segment.latest_time(lend, bounds)


def _last_entry(files: FileSystem, path: Path, sizes: dict[str, int]) -> int:
    count = sizes.get(path.name, 0) // _TIME_ENTRY.size
    if not count:
        return -1
    with closing(files.open(path)) as file:
        data = file.pread(_TIME_ENTRY.size, (count - 1) * _TIME_ENTRY.size)
    return int(_TIME_ENTRY.unpack(data)[0]) if len(data) == _TIME_ENTRY.size else -1
