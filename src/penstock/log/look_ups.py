"""What one log's reads have in common: the files, where recent ones ended, and indexes to mend."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.limits import FROM_FILE_BYTES, READ_PLACES
from penstock.log.batches import StoredBatch
from penstock.log.errors import LogReadError
from penstock.log.header import HEADER_SIZE, read_header
from penstock.log.scan import Place
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from penstock.log.files import FileSystem
    from penstock.log.header import BatchHeader
    from penstock.log.reading import Lend, Readable, Readers
    from penstock.log.segment import Segment
    from penstock.session import FileRange

logger = logging.getLogger(__name__)

FoundT = TypeVar("FoundT")

_RANGES_TOGETHER: Final = 32
"""Batches that are handed out as ranges at once: the header of each is read on the loop."""


class LookUps:
    """Looks things up in the segments of one log, for the loop's thread."""

    def __init__(self, files: FileSystem, readers: Readers) -> None:
        self._readers = readers
        self._open_files = readers.open_files(files)
        self._tasks = Tasks()
        self.places: dict[int, int] = {}
        """Positions of batches by their base offsets, those that were met last."""
        self.rebuilt_indexes = 0
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        """Whoever waits until nothing is looked up."""
        self._barred: asyncio.Future[None] | None = None
        """Done once something may be looked up again, where nothing may now."""

    @property
    def are_barred(self) -> bool:
        """Whether files change their places just now, so that nothing may be looked up."""
        return self._barred is not None

    async def allowed(self) -> None:
        """Return when something may be looked up, in the same turn of the loop."""
        while self._barred is not None:
            await asyncio.shield(self._barred)

    @asynccontextmanager
    async def barring(self) -> AsyncIterator[None]:
        """Nothing is looked up meanwhile. One at a time may ask for that."""
        assert self._barred is None, "one at a time"
        loop = asyncio.get_running_loop()
        self._barred = barred = loop.create_future()
        try:
            if self._running:
                self._idle = loop.create_future()
                await self._idle
            yield
        finally:
            self._barred = self._idle = None
            barred.set_result(None)

    async def run(self, segment: Segment, look_up: Callable[[Lend], FoundT]) -> FoundT:
        """Return what `look_up` finds in a segment. Raises what it raises, and LogReadError where
        another segment has taken its place.
        """
        await self.allowed()
        if segment.is_replaced:
            raise LogReadError(f"{segment.path} was replaced; another look finds what is left")
        self._adopt(segment)
        with self._counted():
            found = await self._readers.look_up(self._open_files, look_up)
            if not segment.index.fits and not segment.index_is_rebuilt:
                segment.index_is_rebuilt = True
                self.rebuilt_indexes += 1
                name = f"index {segment.path} anew"
                await asyncio.shield(self._tasks.start(self._rebuild_index(segment), name))
        return found

    def range_of(self, segment: Segment, start: Place, end: Place) -> FileRange | None:
        """Return part of a segment's file, if that is open; remember where it ends."""
        self._adopt(segment)
        size = end.position - start.position
        found = self._open_files.range_of(segment.path, start.position, size)
        if found is not None:
            found.following = end.offset
            self.remember(end)
        return found

    def batches_of(
        self, segment: Segment, start: Place, end: Place, max_records: int
    ) -> list[StoredBatch]:
        """Return the batches with a large body and a record for each offset, up to the first that
        is none or has more than is left of `max_records`; remember where they end. Raises OSError.
        """
        self._adopt(segment)
        file = self._open_files.lending_now()(segment.path)
        found: list[StoredBatch] = []
        with suppress(BlockingIOError):  # Some header is not in memory.
            for place, header in islice(_headers(file, start, end), _RANGES_TOGETHER):
                max_records -= header.record_count
                size = header.size - HEADER_SIZE
                if max_records < 0 or size < FROM_FILE_BYTES or not header.is_full:
                    break
                body = self._open_files.range_of(segment.path, place.position + HEADER_SIZE, size)
                if body is None:
                    break
                found.append(StoredBatch(header, body))
                start = _behind(place, header)
        if found:
            self.remember(start)
        return found

    def place_of(self, segment: Segment, offset: int) -> Place | None:
        """Return where the batch that begins at `offset` is, if a read ended there lately."""
        position = 0 if offset == segment.base_offset else self.places.get(offset)
        return None if position is None else Place(position, offset)

    def bytes_from(self, segment: Segment, offset: int) -> int:
        """Return at most how many bytes of a segment lie from `offset` on."""
        place = self.place_of(segment, offset)
        return segment.size if place is None else segment.size - place.position

    def remember(self, place: Place) -> None:
        self.places[place.offset] = place.position
        if len(self.places) > READ_PLACES:
            del self.places[next(iter(self.places))]
        assert len(self.places) <= READ_PLACES, "what is remembered is bounded"

    def forget_below(self, offset: int) -> None:
        """Nobody reads below `offset` any more."""
        self.places = {each: at for each, at in self.places.items() if each >= offset}

    def forget_between(self, start: int, end: int) -> None:
        """The batches from `start` up to `end` lie elsewhere now."""
        self.places = {each: at for each, at in self.places.items() if not start <= each < end}

    def forget(self, segment: Segment) -> None:
        """The segment is closed, or gone."""
        self._open_files.forget(segment.path, *segment.index.paths)

    def _adopt(self, segment: Segment) -> None:
        if segment.file is not None:
            self._open_files.adopt(segment.path, segment.file)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0 and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    async def _rebuild_index(self, segment: Segment) -> None:
        """Have an index that a look-up found wrong built anew in a thread."""
        end = Place(segment.size, segment.end_offset)
        segment.index = segment.new_index()
        segment.index.hold()
        build = partial(segment.indexed_anew, end=end)
        try:
            with self._counted():
                built = await self._readers.look_up_in_thread(self._open_files, build)
        except OSError as error:
            # It is a hint: without it, reading is slow but right.
            logger.warning("%s: its index can't be rebuilt: %s", segment.path, error)
        else:
            segment.index.take_over(built)


def _headers(file: Readable, start: Place, end: Place) -> Iterator[tuple[Place, BatchHeader]]:
    """Yield where each batch between two boundaries begins, and its header. Raises BlockingIOError.

    All of it was sound once. A header that turned bad since is not believed: a batch ends where the
    next one begins, or at `end`.
    """
    place, header = start, _header_at(file, start, end)
    while header is not None:
        following = _behind(place, header)
        next_header = _header_at(file, following, end)
        if next_header is None and following != end:
            return
        yield place, header
        place, header = following, next_header


def _header_at(file: Readable, place: Place, end: Place) -> BatchHeader | None:
    if place.position + HEADER_SIZE > end.position:
        return None
    data = file.pread(HEADER_SIZE, place.position)
    header = read_header(data) if len(data) == HEADER_SIZE else None
    return header if header is not None and header.base_offset == place.offset else None


def _behind(place: Place, header: BatchHeader) -> Place:
    return Place(place.position + header.size, header.next_offset)
