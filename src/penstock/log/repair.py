"""What can be found out about a log that no broker has open, and going on without a part of it."""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.checkpoint import NAME, Checkpoint, read_checkpoint, write_checkpoint
from penstock.log.files import RealFileSystem
from penstock.log.header import walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.log.header import BatchHeader

_LOG_NAME: Final = re.compile(r"\d{20}\.log")


class Marks(NamedTuple):
    """The highest numbers that batches of a log carry, -1 where there is none."""

    leader_epoch: int
    producer_id: int


class Gap(NamedTuple):
    """Offsets at the beginning of a log that are missing: from `start` up to `end`."""

    start: int
    end: int


def segments_in(directory: Path) -> list[Path]:
    """Return the segment files of a log, the oldest first."""
    return sorted(each for each in directory.glob("*.log") if _LOG_NAME.fullmatch(each.name))


def marks_of(directory: Path) -> Marks:
    """Read the headers of all batches that follow on one another. Raises OSError."""
    marks = Marks(-1, -1)
    for path in segments_in(directory):
        for header in _headers(path):
            marks = Marks(
                max(marks.leader_epoch, header.leader_epoch),
                max(marks.producer_id, header.producer_id),
            )
    return marks


def _headers(path: Path) -> Iterator[BatchHeader]:
    if not path.stat().st_size:
        return
    expected = int(path.stem)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        memoryview(content) as view,
    ):
        for _, header in walk(view):
            if header.base_offset != expected:
                return  # Damage: what follows is not to be trusted.
            expected = header.next_offset
            yield header


def missing_beginning(directory: Path) -> Gap | None:
    """Return what a log's own checkpoint says there should be before its first segment.

    Raises OSError.
    """
    known = _checkpoint_of(directory)
    if known is None:
        return None
    paths = segments_in(directory)
    first = int(paths[0].stem) if paths else known.offset
    return Gap(known.start_offset, first) if first > known.start_offset else None


def accept_beginning(directory: Path, at_least: int = 0) -> int:
    """Let a log begin where its segments do; return that offset.

    Where there are none it begins where it ended, or at `at_least`, so that no offset that somebody
    may have seen is given again. Raises OSError.
    """
    known = _checkpoint_of(directory) or Checkpoint()
    paths = segments_in(directory)
    if paths:
        kept = Checkpoint(
            max(known.offset, int(paths[0].stem)),
            known.segment_base,
            known.position,
            max(known.start_offset, int(paths[0].stem)),
            known.states,
        )
    else:
        end = max(known.offset, at_least)
        kept = Checkpoint(end, start_offset=end, states=known.states)
    write_checkpoint(RealFileSystem(), directory, kept)
    return kept.start_offset


def _checkpoint_of(directory: Path) -> Checkpoint | None:
    """Return a log's checkpoint, an empty one where it has none, and None for a damaged one."""
    file = directory / NAME
    if not file.exists():
        return Checkpoint()
    return read_checkpoint(RealFileSystem(), directory, file.stat().st_size)
