"""One segment, judged byte by byte. Runs on the executors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.log.config import LogConfig
from penstock.log.files import RealFileSystem
from penstock.log.header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from penstock.log.reading import lending
from penstock.log.scan import CorruptRange, Place, scan
from penstock.log.segments import open_segments

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.log.scan import Batch
    from penstock.log.segment import Segment

_HIGHEST_SEQUENCE: Final = (1 << 31) - 1

_ANY_EPOCH: Final = (1 << 31) - 1
"""Only its owner knows at which leader epoch a log was opened last."""


class Damage(NamedTuple):
    """Bytes of a segment that hold no sound batch."""

    position: int
    end_position: int
    start: int
    """The first offset that is lost; `end` is the one after the last that is known to be."""
    end: int


@dataclass
class Checked:
    """What one segment holds."""

    base_offset: int
    end_offset: int
    """Behind the last batch or what is damaged; of the last segment, behind its last batch."""
    size: int
    batches: int = 0
    records: int = 0
    damage: list[Damage] = field(default_factory=list)
    torn_bytes: int = 0
    """Behind the last whole batch of a log: of one that is being written, or never was."""
    ended: list[int] = field(default_factory=list)
    """The ids of producers that ended a transaction here, be it begun here or before."""
    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each transaction that begins here and does not end here, by producer."""
    repeated: list[int] = field(default_factory=list)
    """Offsets of batches with sequence numbers that their producer had used before."""


def check_segment(directory: Path, base_offset: int) -> Checked:
    """Judge each byte of a segment: checksums, offsets, sequence numbers, transactions.

    Raises OSError, FileNotFoundError where it was removed meanwhile.
    """
    files = RealFileSystem()
    found = open_segments(directory, files.entries(directory), LogConfig(), files, _ANY_EPOCH)
    segment = next((each for each in found if each.base_offset == base_offset), None)
    if segment is None:
        raise FileNotFoundError(f"{directory} has no segment that begins at {base_offset}")
    return _Check(segment, is_last=segment is found[-1]).run(files)


class _Check:
    def __init__(self, segment: Segment, *, is_last: bool) -> None:
        self._segment = segment
        self._is_last = is_last
        self._checked = Checked(segment.base_offset, segment.base_offset, segment.size)
        self._sequences: dict[tuple[int, int], int] = {}
        self._ended: set[int] = set()

    def run(self, files: RealFileSystem) -> Checked:
        segment, checked = self._segment, self._checked
        with lending(files) as lend:
            file = lend(segment.path)
            for found in scan(file, Place(0, segment.base_offset), segment.bounds):
                if isinstance(found, CorruptRange):
                    self._damaged(found)
                else:
                    self._sound(found)
        checked.ended = sorted(self._ended)
        return checked

    def _damaged(self, found: CorruptRange) -> None:
        checked = self._checked
        at_the_end = found.end_position == self._segment.size
        if self._is_last and at_the_end:
            checked.torn_bytes = found.end_position - found.position
            return
        damage = Damage(found.position, found.end_position, found.base_offset, found.next_offset)
        checked.damage.append(damage)
        checked.end_offset = found.next_offset

    def _sound(self, found: Batch) -> None:
        header, checked = found.header, self._checked
        checked.batches += 1
        checked.end_offset = header.next_offset
        if not header.attributes & ATTRIBUTE_CONTROL:
            checked.records += header.record_count
        if header.producer_id >= 0:
            self._in_sequence(header)
            self._in_transaction(header)

    def _in_sequence(self, header: BatchHeader) -> None:
        if header.base_sequence < 0:
            return
        producer = (header.producer_id, header.producer_epoch)
        # Batches may have gone by compaction, and numbers begin anew at 0 (KIP-98).
        if 0 < header.base_sequence < self._sequences.get(producer, 0):
            self._checked.repeated.append(header.base_offset)
        following = header.base_sequence + header.last_offset_delta + 1
        self._sequences[producer] = following & _HIGHEST_SEQUENCE

    def _in_transaction(self, header: BatchHeader) -> None:
        if not header.attributes & ATTRIBUTE_TRANSACTIONAL:
            return
        if header.attributes & ATTRIBUTE_CONTROL:
            self._ended.add(header.producer_id)
            self._checked.open.pop(header.producer_id, None)
        else:
            self._checked.open.setdefault(header.producer_id, header.base_offset)
