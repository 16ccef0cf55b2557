"""What a log holds, as its readers meet it: segments found by offset, read, and given up."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from penstock.limits import FROM_FILE_BYTES
from penstock.log.ages import stored_segments
from penstock.log.batches import no_batches, whole_before
from penstock.log.errors import LogClosedError, LogReadError, OffsetOutOfRangeError
from penstock.log.interface import SegmentExtent, StoredSegment
from penstock.log.scan import Bounds, Place
from penstock.log.segments import segment_with

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from penstock.log.appender import Appender
    from penstock.log.batches import Batches, StoredBatch
    from penstock.log.look_ups import LookUps
    from penstock.log.reading import Lend
    from penstock.log.segment import Segment
    from penstock.session import FileRange

FoundT = TypeVar("FoundT")


class Contents:
    """The segments of one log that are written, and where it begins.

    All methods belong to the event loop's thread. The appender adds to `segments`.
    """

    def __init__(
        self, directory: Path, appender: Appender, look_ups: LookUps, start_offset: int
    ) -> None:
        self.segments = appender.segments
        self.start_offset = start_offset
        """The first offset that can be read."""
        self.is_closed = False
        self.replacements = 0
        """How often `replace` put something else in the place of segments."""
        self.look_ups = look_ups
        self._directory = directory
        self._appender = appender
        self._found_bytes = sum(segment.size for segment in self.segments)
        """Of all that was there when the log was opened, less what was trimmed since."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all stored batches."""
        return self._found_bytes + self._appender.written_bytes

    def bytes_from(self, offset: int) -> int:
        """Return at most how many bytes are stored from `offset` on, as `Log` says."""
        if self.segments and offset >= self.segments[-1].base_offset:
            return self.look_ups.bytes_from(self.segments[-1], offset)
        return self.size_bytes

    async def read(self, offset: int, max_bytes: int, end: int) -> Batches:
        """Return whole batches below `end`, all of one segment, as `Log` says."""
        if self.look_ups.are_barred:
            await self.look_ups.allowed()
        segment = self._segment_at(offset)
        if segment is None or offset >= end:
            return no_batches(offset)
        place = self.look_ups.place_of(segment, offset)
        bounds = segment.bounds

        def look_up(lend: Lend) -> tuple[Batches, Place]:
            return segment.read(lend, bounds, offset, max_bytes, place, end)

        batches, following = await self._look_up(look_up, segment, offset)
        start = Place(following.position - len(batches.data), batches.base_offset)
        if batches.magic is not None:
            segment.verified.add(start, *following, batches.magic)
        self.look_ups.remember(start)
        self.look_ups.remember(following)
        return batches if batches.next_offset <= end else whole_before(batches, end)

    def passed(self, offset: int) -> None:
        """A reader goes on at `offset`, as `Log` says."""
        if offset == self._appender.written_offset and self.segments:
            self.look_ups.remember(Place(self.segments[-1].size, offset))

    def sound_range(
        self, offset: int, max_bytes: int, magic: int, end: int | None
    ) -> FileRange | None:
        """Return whole batches as a range of a file, as `Log` says."""
        found = self._sound_places(offset, max_bytes, magic, end)
        try:
            return None if found is None else self.look_ups.range_of(*found)
        except OSError:
            return None  # There is no descriptor to be had; a read says so where it fails as well.

    def sound_batches(
        self, offset: int, max_bytes: int, max_records: int, magic: int, end: int | None
    ) -> list[StoredBatch]:
        """Return whole batches as ranges of a file, as `Log` says."""
        found = self._sound_places(offset, max_bytes, magic, end)
        try:
            return [] if found is None else self.look_ups.batches_of(*found, max_records)
        except OSError:
            return []

    async def find_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset of the first batch whose highest timestamp is at least that."""
        start = self.start_offset
        while True:
            await self.look_ups.allowed()
            self.refuse_closed()
            segment = next((each for each in self.segments if each.end_offset > start), None)
            if segment is None:
                return None
            look_up = partial(_find_time, segment, segment.bounds, timestamp_ms, start)
            try:
                found = await self._look_up(look_up, segment, start)
            except OffsetOutOfRangeError:  # It was given up this moment.
                start = self.start_offset
                continue
            if found is not None:
                return max(found, self.start_offset)
            start = segment.end_offset

    @property
    def segment_extents(self) -> list[SegmentExtent]:
        """The segments that hold something, the oldest first, as `Log` says."""
        return [
            SegmentExtent(each.base_offset, each.end_offset, each.size)
            for each in self.segments
            if each.size
        ]

    def stored_segments(self) -> AsyncGenerator[StoredSegment, None]:
        """Yield the segments that hold something, the oldest first, as `Log` says."""
        self.refuse_closed()
        return stored_segments(tuple(self.segments), self._look_up)

    async def bytes_behind(self, offset: int) -> int:
        """Return how many bytes are stored from the batch with `offset` on, as `Log` says."""
        await self.look_ups.allowed()
        segment = self._segment_at(max(offset, self.start_offset))
        if segment is None:
            return 0
        look_up = partial(_position_of, segment, segment.bounds, max(offset, self.start_offset))
        position = await self._look_up(look_up, segment, offset)
        later = bisect_right(self.segments, segment.base_offset, key=lambda each: each.base_offset)
        return segment.size - position + sum(each.size for each in self.segments[later:])

    def move_start(self, offset: int) -> None:
        """Let nothing below `offset` be read any more."""
        if offset <= self.start_offset:
            return
        if offset == self._appender.end_offset:
            self._appender.begin_segment()
        self.start_offset = offset
        self.look_ups.forget_below(offset)

    def take_below(self, offset: int) -> list[Segment]:
        """Return the full segments below `offset`, which the log forgets with that."""
        last = max(len(self.segments) - 1, 0)
        ends = [segment.end_offset for segment in self.segments[:last]]
        count = bisect_right(ends, offset)
        taken = self.segments[:count]
        del self.segments[:count]
        self._found_bytes -= sum(segment.size for segment in taken)
        assert all(segment.file is None for segment in taken), "full segments are flushed"
        for segment in taken:
            self.look_ups.forget(segment)
        return taken

    def segments_between(self, start: int, end: int) -> list[Segment]:
        """Return the full segments that hold the offsets from one boundary of some to another.

        Empty where these are none.
        """
        full = self.segments[:-1]
        found = [each for each in full if start <= each.base_offset and each.end_offset <= end]
        if not found or (found[0].base_offset, found[-1].end_offset) != (start, end):
            return []
        return found

    def replace(self, sources: Sequence[Segment], replacement: Segment) -> None:
        """Have a new segment in the place of some; nobody reads these now."""
        first = self.segments.index(sources[0])
        last = first + len(sources)
        assert self.segments[first:last] == list(sources), "they follow one another"
        assert all(segment.file is None for segment in sources), "full segments are flushed"
        for segment in sources:
            segment.is_replaced = True
            self.look_ups.forget(segment)
        self.look_ups.forget_between(replacement.base_offset, replacement.end_offset)
        self.segments[first:last] = [replacement]
        self.replacements += 1
        self._found_bytes += replacement.size - sum(segment.size for segment in sources)

    def close(self) -> None:
        """Close the files; whoever is about to look something up hears of it."""
        self.is_closed = True
        for segment in self.segments:
            if segment.file is not None:
                segment.file.close()
                segment.file = None
            self.look_ups.forget(segment)

    def refuse_closed(self) -> None:
        """Raise LogClosedError where the log is closed."""
        if self.is_closed:
            raise LogClosedError(f"{self._directory} is closed")

    def _segment_at(self, offset: int) -> Segment | None:
        """Return the segment that holds `offset`; None at the end of the log."""
        self.refuse_closed()
        end_offset = self._appender.end_offset
        if self._appender.written_offset <= offset <= end_offset:
            return None
        if not self.start_offset <= offset < end_offset:
            raise OffsetOutOfRangeError(offset, self.start_offset, end_offset)
        return segment_with(self.segments, offset)

    def _sound_places(
        self, offset: int, max_bytes: int, magic: int, end: int | None
    ) -> tuple[Segment, Place, Place] | None:
        """Return where sound batches begin and end, if there are enough of them."""
        end = self._appender.end_offset if end is None else end
        segment = self._segment_at(offset)
        if self.look_ups.are_barred:
            return None
        if segment is None or offset >= end:
            return None
        start = self.look_ups.place_of(segment, offset)
        if start is None or segment.size - start.position < FROM_FILE_BYTES:
            return None
        following = segment.sound_range(start, max_bytes, end, magic)
        if following is None or following.position - start.position < FROM_FILE_BYTES:
            return None
        return segment, start, following

    async def _look_up(
        self, look_up: Callable[[Lend], FoundT], segment: Segment, offset: int
    ) -> FoundT:
        """Look something up in `segment`, at `offset`. Raises LogError."""
        try:
            return await self.look_ups.run(segment, look_up)
        except OSError as error:
            self.refuse_closed()
            if offset < self.start_offset:
                end_offset = self._appender.end_offset
                raise OffsetOutOfRangeError(offset, self.start_offset, end_offset) from error
            raise LogReadError(f"{segment.path}: {error}") from error


def _find_time(
    segment: Segment, bounds: Bounds, timestamp_ms: int, start: int, lend: Lend
) -> int | None:
    return segment.find_time(lend, bounds, timestamp_ms, start)


def _position_of(segment: Segment, bounds: Bounds, offset: int, lend: Lend) -> int:
    return segment.position_of(lend, bounds, offset)
