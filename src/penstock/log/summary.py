"""What the folder of a closed log says of it: nothing is opened, recovered or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.checkpoint import NAME, Checkpoint, read_checkpoint
from penstock.log.config import MAX_SEGMENT_SPAN
from penstock.log.interface import ClosedLog, LogSummary
from penstock.log.reading import lending
from penstock.log.scan import Bounds, Place, step_headers
from penstock.log.segments import segment_bases, segment_path

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import FileSystem

_ANY_EPOCH: Final = (1 << 31) - 1
"""Only its owner knows at which leader epoch a log was opened last."""


def summarise(files: FileSystem, directory: Path) -> LogSummary:
    """Return what a log will hold once it is opened, as far as its headers say. Blocks.

    Reads the checkpoint and the headers of what came after it; no checksum is verified, so what a
    crash damaged may count. Raises OSError.
    """
    sizes = files.entries(directory)
    known = _checkpoint(files, directory, sizes)
    bases = segment_bases(sizes)
    while len(bases) > 1 and bases[1] <= known.start_offset:
        del bases[0]  # Trimmed, and its removal was cut short.
    while bases:
        last = segment_path(directory, bases[-1])
        end = _end(files, last, bases[-1], sizes[last.name], known)
        if end.position:
            break
        bases.pop()  # Nothing of it is whole.
    else:
        return LogSummary(0, 0, *(max(known.offset, known.start_offset),) * 2)
    before = [sizes[segment_path(directory, base).name] for base in bases[:-1]]
    start_offset = max(bases[0], known.start_offset)
    end_offset = max(start_offset, end.offset, known.offset)
    return LogSummary(len(bases), sum(before) + end.position, start_offset, end_offset)


def closed_log(files: FileSystem, directory: Path) -> ClosedLog:
    """Return what the names and sizes in a folder say, and the checkpoint. Blocks; raises OSError.

    No segment is opened.
    """
    sizes = files.entries(directory)
    known = _checkpoint(files, directory, sizes)
    bases = segment_bases(sizes)
    stored = [sizes[segment_path(directory, base).name] for base in bases]
    full = [
        (end, size)
        for end, size in zip(bases[1:], stored, strict=False)
        if end > known.start_offset
    ]
    states = {name: bytes(section.state) for name, section in known.states.items()}
    return ClosedLog(full, stored[-1] if stored else 0, states)


def _checkpoint(files: FileSystem, directory: Path, sizes: dict[str, int]) -> Checkpoint:
    found = read_checkpoint(files, directory, sizes[NAME]) if NAME in sizes else None
    return found or Checkpoint()


def _end(files: FileSystem, path: Path, base: int, size: int, known: Checkpoint) -> Place:
    """Return where the last segment ends."""
    end = Place(0, base)
    if base == known.segment_base and known.position <= size:
        end = Place(known.position, known.offset) if known.position else end
    if end.position < size:
        bounds = Bounds(size, base + MAX_SEGMENT_SPAN, _ANY_EPOCH)
        with lending(files) as lend:
            for position, header in step_headers(lend(path), end, bounds):
                end = Place(position + header.size, header.next_offset)
    return end
