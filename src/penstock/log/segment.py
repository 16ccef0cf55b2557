"""One segment: a file of batches, its indexes, and how a batch in it is found and read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.log.errors import CorruptBatchError
from penstock.log.header import read_header
from penstock.log.index import SegmentIndex
from penstock.log.reading import lending
from penstock.log.scan import (
    Batch,
    Bounds,
    CorruptRange,
    Place,
    header_at,
    read_sound,
    scan,
    step_headers,
)
from penstock.log.verified import Verified

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.batches import Batches
    from penstock.log.files import File, FileSystem
    from penstock.log.reading import Lend

logger = logging.getLogger(__name__)

UNSURE_MS: Final = 1 << 62
"""A time so late that nothing is passed over by it, where the index can't be sure."""

_WITNESSES: Final = 2
"""Time entries that have to agree, so that one flipped bit can't hide a batch."""


class Segment:
    """Batches from `base_offset` up to `end_offset`, in the first `size` bytes of one file.

    Only the log's last segment keeps its file open for writing. Look-ups read through files that
    they are lent, for they may run in a thread; what they may look at are the `bounds` that the
    segment had when they began.
    """

    def __init__(
        self,
        files: FileSystem,
        stem: Path,
        base_offset: int,
        index: SegmentIndex,
        *,
        max_leader_epoch: int,
    ) -> None:
        self._files = files
        self.path = stem.with_suffix(".log")
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        self.index = index
        self.file: File | None = None
        self.corrupt: dict[int, CorruptRange] = {}
        """The damage seen so far, by base offset."""
        self.verified = Verified()
        """What of it is known to be sound. Belongs to the loop's thread."""
        self.is_replaced = False
        """Whether what was left of it is in another segment."""
        self.index_is_rebuilt = False
        """Whether the index was built anew. What doesn't fit after that is the segment's damage."""
        self.known_latest_ms: int | None = None
        """What `latest_time` said when somebody asked. Belongs to the loop's thread."""
        self._max_leader_epoch = max_leader_epoch

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.size, self.end_offset, self._max_leader_epoch)

    def read(
        self,
        lend: Lend,
        bounds: Bounds,
        offset: int,
        max_bytes: int,
        place: Place | None,
        end: int | None = None,
    ) -> tuple[Batches, Place]:
        """Return sound batches from the one that holds `offset`, and the place after them.

        `place` is where that batch begins, if known; `end` an offset that all of them begin below.
        Raises CorruptBatchError, OSError.
        """
        assert end is None or offset < end, "there is something to read"
        assert self.base_offset <= offset < bounds.end_offset, "the caller picks the segment"
        self._refuse_damaged(offset)
        file = lend(self.path)
        place = place or self._find(lend, bounds, offset)
        if place is not None:
            batches = read_sound(file, place, max_bytes, bounds, end)
            if batches.data and offset < batches.next_offset:
                return batches, place.after(batches)
        place = self._find_surely(lend, bounds, offset)
        batches = read_sound(file, place, max_bytes, bounds, end)
        assert batches.data, "it was sound a moment ago"
        return batches, place.after(batches)

    def sound_range(self, start: Place, max_bytes: int, end: int, magic: int) -> Place | None:
        """Return where a range of sound batches in the encoding of `magic` ends, as Verified says.

        `start` is the place of its first batch.
        """
        found = self.verified.range_from(start, max_bytes, end, magic)
        if found is None or any(
            damage.base_offset < found.offset and start.offset < damage.next_offset
            for damage in tuple(self.corrupt.values())
        ):
            return None
        return found

    def rebuild_index(self, end: Place | None = None) -> None:
        """Write both indexes anew from the batches, as far as `end`. Raises OSError."""
        end = end or Place(self.size, self.end_offset)
        with lending(self._files) as lend:
            self.index = self.indexed_anew(lend, end)
        self.index_is_rebuilt = True

    def indexed_anew(self, lend: Lend, end: Place) -> SegmentIndex:
        """Write both index files anew from the batches, as far as `end`. Raises OSError.

        May run in a thread, while nobody else writes the files.
        """
        logger.warning("%s: its index is missing or does not fit: indexing it anew", self.path)
        assert end.position <= self.size, "only what is there is indexed"
        index = self.new_index()
        index.clear()
        for batch in self._sound_batches(lend, Place(0, self.base_offset), self._before(end)):
            self._add(index, batch)
        index.save()
        return index

    def new_index(self) -> SegmentIndex:
        """Return an index for this segment that knows of no batch yet."""
        return SegmentIndex(self._files, self.path.with_suffix(""), self.index.interval)

    def check_index_before(self, end: Place) -> None:
        """Look whether the index lacks what it should have shortly before `end`. Raises OSError."""
        assert end.offset > self.base_offset, "something precedes the end"
        with lending(self._files) as lend:
            self._find(lend, self.bounds, end.offset - 1)

    def add_to_index(self, batch: Batch) -> None:
        self._add(self.index, batch)

    def find_time(self, lend: Lend, bounds: Bounds, timestamp: int, start: int) -> int | None:
        """Return the base offset of the first batch whose highest timestamp is at least that.

        Batches that lie wholly below the offset `start` are left out. Raises OSError.
        """
        if self._proven_latest(lend, bounds) < timestamp:
            return None
        place = self._before_time(lend, bounds, timestamp)
        if place.offset < start:
            place = self._find(lend, bounds, start) or place
        for batch in self._sound_batches(lend, place, bounds):
            if batch.header.max_timestamp >= timestamp and batch.header.next_offset > start:
                return batch.header.base_offset
        return None

    def latest_time(self, lend: Lend, bounds: Bounds) -> int:
        """Return the highest timestamp here in ms, or UNSURE_MS; where no batch has one, when the
        file was written last. Raises OSError.
        """
        if self.index.fits and self.index.has_no_time(lend):
            return self._files.modified_ms(self.path)
        return self._proven_latest(lend, bounds)

    def position_of(self, lend: Lend, bounds: Bounds, offset: int) -> int:
        """Return where the batch lies that holds `offset`, as far as headers and index know; 0
        where they do not fit. Raises OSError.
        """
        place = self._find(lend, bounds, offset)
        return 0 if place is None else place.position

    def note(self, damage: CorruptRange) -> None:
        """Remember damage that costs offsets, and report it once."""
        position, end_position, base_offset, next_offset = damage
        if base_offset == next_offset:  # Nobody can ask for anything that lies there.
            logger.error("%s: bytes %d..%d hold no batch", self.path, position, end_position - 1)
        elif base_offset not in self.corrupt:
            self.corrupt[base_offset] = damage
            logger.error("%s", self.corruption(damage))

    def corruption(self, damage: CorruptRange) -> CorruptBatchError:
        return CorruptBatchError(
            damage.base_offset,
            damage.next_offset,
            str(self.path),
            damage.position,
            damage.end_position,
        )

    def _before(self, end: Place) -> Bounds:
        return self.bounds._replace(end_position=end.position, end_offset=end.offset)

    def _add(self, index: SegmentIndex, batch: Batch) -> None:
        header = batch.header
        relative = header.last_offset - self.base_offset
        assert batch.position + header.size <= self.size, "a batch lies inside its segment"
        index.add(batch.position, header.size, relative, header.max_timestamp)

    def _sound_batches(self, lend: Lend, start: Place, bounds: Bounds) -> Iterator[Batch]:
        """Yield what is sound from a place on, and note what is not."""
        for found in scan(lend(self.path), start, bounds):
            if isinstance(found, Batch):
                yield found
            else:
                self.note(found)

    def _refuse_damaged(self, offset: int) -> None:
        for damage in tuple(self.corrupt.values()):
            if damage.base_offset <= offset < damage.next_offset:
                raise self.corruption(damage)

    def _find(self, lend: Lend, bounds: Bounds, offset: int) -> Place | None:
        """Find the batch that holds `offset` by headers alone; None where they don't fit."""
        if offset == self.base_offset:
            return Place(0, offset)
        anchor = next(self._anchors(lend, bounds, offset))
        assert anchor.offset <= offset, "a search goes forward"
        for batch in step_headers(lend(self.path), anchor, bounds):
            if offset < batch.header.next_offset:
                return Place(batch.position, batch.header.base_offset)
            if batch.position - anchor.position > self.index.interval:
                self.index.fits = False  # This batch should have had an entry.
        return None

    def _find_surely(self, lend: Lend, bounds: Bounds, offset: int) -> Place:
        """Find the batch that holds `offset` by checksums. Raises CorruptBatchError."""
        end = self._sound_anchor(lend, bounds, offset)
        for found in scan(lend(self.path), end, bounds):
            if isinstance(found, CorruptRange):
                self.note(found)
                if offset < found.next_offset:
                    raise self.corruption(found)
                end = Place(found.end_position, found.next_offset)
            else:
                if offset < found.header.next_offset:
                    return Place(found.position, found.header.base_offset)
                end = Place(found.position + found.header.size, found.header.next_offset)
        # The file holds fewer offsets than it should: what is missing counts as damaged.
        damage = CorruptRange(end.position, bounds.end_position, end.offset, bounds.end_offset)
        self.note(damage)
        raise self.corruption(damage)

    def _sound_anchor(self, lend: Lend, bounds: Bounds, offset: int) -> Place:
        for place in self._anchors(lend, bounds, offset):
            if read_sound(lend(self.path), place, 0, bounds).data:
                return place
        return Place(0, self.base_offset)

    def _anchors(self, lend: Lend, bounds: Bounds, offset: int) -> Iterator[Place]:
        """Yield places to search from, nearest first: index entries that hold, then the start."""
        for last_offset, position in self.index.offsets.below(offset - self.base_offset, lend):
            header = header_at(lend(self.path), position, bounds)
            if header is not None and header.last_offset == self.base_offset + last_offset:
                yield Place(position, header.base_offset)
            else:
                self.index.fits = False
        yield Place(0, self.base_offset)

    def _proven_latest(self, lend: Lend, bounds: Bounds) -> int:
        """Return the highest timestamp here, or a very high one where the index can't be sure."""
        timestamp, last_offset = self.index.latest(lend)
        if self._has_timestamp(lend, bounds, timestamp, last_offset) is None:
            holds = self.index.has_no_time(lend) or self._is_ahead(last_offset)
            self.index.fits = self.index.fits and holds
            return UNSURE_MS
        return timestamp

    def _before_time(self, lend: Lend, bounds: Bounds, timestamp: int) -> Place:
        """Return a place before which no batch is as late as `timestamp`.

        An entry that names the wrong batch holds all the same where that batch has the same time,
        and what lies between would be passed over. So two entries have to agree.
        """
        held = []
        for entry in self.index.times.below(timestamp - 1, lend):
            if place := self._has_timestamp(lend, bounds, *entry):
                held.append(place)
            elif not self._is_ahead(entry[1]):
                self.index.fits = False
            if len(held) == _WITNESSES:
                return min(held)
        return Place(0, self.base_offset)

    def _is_ahead(self, last_offset: int) -> bool:
        """Whether an entry is of what the writer has just added, and nobody reads yet."""
        return self.file is not None and self.base_offset + last_offset >= self.end_offset

    def _has_timestamp(
        self, lend: Lend, bounds: Bounds, timestamp: int, last_offset: int
    ) -> Place | None:
        offset = self.base_offset + last_offset
        if not self.base_offset <= offset < bounds.end_offset:
            return None
        place = self._find(lend, bounds, offset)
        if place is None:
            return None
        data = read_sound(lend(self.path), place, 0, bounds).data
        return place if data and read_header(data).max_timestamp == timestamp else None
