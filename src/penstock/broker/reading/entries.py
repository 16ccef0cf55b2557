"""Reads one partition's batches ahead, in order, for a reader that takes them one by one."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock import records
from penstock.broker.errors import UnknownTopicError
from penstock.broker.reading.visible import visible
from penstock.broker.transactions.committed import Committed
from penstock.log import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.batches import StoredBatch
from penstock.log.header import ATTRIBUTE_CHUNK, ATTRIBUTE_DELAYED, HEADER_SIZE, Magic
from penstock.memory import Holding, MemoryShortError
from penstock.records import MalformedBatchError
from penstock.records.pulsar.damage import damaged_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.broker.topics.partition import Partition
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

READ_BYTES: Final = 1 << 20
ONE_BATCH: Final = 1
"""Bytes to ask for when only one batch is wanted: the first is returned whatever its size."""
RANGES_BYTES: Final = 8 << 20
"""Bytes of batches that are taken as ranges of a file at once: more than are read, for none is."""
_ANY_COUNT: Final = 1 << 62
_SOON: Final = 64
"""Offsets that are passed over sooner than another read is done."""
_LOOKED_INTO: Final = ATTRIBUTE_CHUNK | ATTRIBUTE_DELAYED

logger = logging.getLogger(__name__)


class Entry(NamedTuple):
    """One batch: its header, parsed, and a view of all of it in the reader's encoding."""

    header: BatchHeader
    batch: memoryview

    @property
    def body(self) -> memoryview:
        """What follows the header."""
        return self.batch[HEADER_SIZE:]


AnyEntry: TypeAlias = Entry | StoredBatch
"""A batch that was read, or one that goes from the file to the client: neither a chunk nor delayed.
"""


class EntryReader:
    """`position` is the offset of what comes next.

    With `from_file`, large batches come as ranges of a file where they can be.
    `skipped` is called with ranges of offsets, ascending, that hold nothing to read: they fell to
    retention, or were never a message. Nobody can acknowledge them. What is damaged is one entry
    that its reader finds damaged.
    """

    def __init__(
        self,
        partition: Partition,
        position: int,
        magic: Magic,
        skipped: Callable[[Sequence[tuple[int, int]]], None],
    ) -> None:
        self.position = position
        self.from_file = False
        self._partition = partition
        self._magic = magic
        self._skipped = skipped
        self._ahead: deque[AnyEntry] = deque()
        # What was read and is not split yet: a large read has batches for a tenth of a second.
        self._unsplit: Iterator[list[Entry]] = iter(())
        self._meets_gaps = False
        """Whether there was something between batches that it can't see, as beside transactions."""
        self._rewinds = 0
        self._edition = (-1, -1)
        """The partition's when all that is read ahead was read."""
        self._held = Holding(partition.memory.caches)
        partition.memory.add_cache(self)

    def rewind(self, position: int) -> None:
        """Go on at `position`, or at the batch that contains it."""
        self.position = position
        self.empty()
        self._rewinds += 1

    def go_on_at(self, position: int) -> None:
        """Rewind to a position, unless it comes soon in what was read ahead: then `take` returns
        what lies before it too.
        """
        is_soon = self.position <= position <= self.position + _SOON
        if not is_soon or not (self._ahead or self._held.size):
            self.rewind(position)

    def empty(self) -> None:
        """Forget what was read ahead; see penstock.memory.Cache."""
        self._ahead.clear()
        self._unsplit = iter(())
        self._held.set(0)

    async def fill(self, max_bytes: int = READ_BYTES) -> bool:
        """Have something to take, unless the reader stands at the end of the log."""
        self._drop_other_editions()
        while not self._ahead:
            if self._split():
                if not self._ahead:
                    await asyncio.sleep(0)  # Others have work too, and markers can be many.
                continue
            if self.position >= self._partition.readable_end() or self._partition.deleted:
                return False
            behind = self._partition.unseen.behind(self._magic, self.position)
            if behind > self.position:
                self._skip(self.position, behind)
                continue
            self._edition = self._partition.edition
            if self.from_file and max_bytes != ONE_BATCH:
                self._ahead.extend(self._ranges())
            if not self._ahead:
                await self._read_ahead(max_bytes)
        return True

    def take(self) -> AnyEntry | None:
        """Return the next batch of those that were read ahead."""
        if not self._ahead:
            return None
        entry = self._ahead.popleft()
        self.position = entry.header.next_offset
        return entry

    def _drop_other_editions(self) -> None:
        """Forget what was read before the log was compacted, or opened anew."""
        if (self._ahead or self._held.size) and self._edition != self._partition.edition:
            self.empty()

    async def _read_ahead(self, max_bytes: int) -> None:
        rewinds = self._rewinds
        if self._meets_gaps:
            await records.prepare()
        found = await self._read(max_bytes)
        if self._edition != self._partition.edition:
            return  # It was read while others took its place.
        if rewinds == self._rewinds and found is not None:
            committed, buffers = found
            self._unsplit = self._entries(buffers, committed)
            self._held.set(sum(map(len, buffers)))

    async def _read(self, max_bytes: int) -> tuple[Committed, list[Buffer]] | None:
        """Read at `position`; None when what is there had to be skipped."""
        position, rewinds = self.position, self._rewinds
        try:
            with self._partition.memory.reading() as reading:
                await reading.grant(min(max_bytes, self._partition.bytes_from(position)))
                found = await self._partition.read_on(position, max_bytes, self._magic)
                committed = self._partition.committed_in(position, found.next_offset)
                return committed, found.parts
        except OffsetOutOfRangeError:
            self._skip(position, self._partition.start_offset)
        except CorruptBatchError as error:
            return self._damaged(error.base_offset, error.next_offset)
        except MalformedBatchError as error:
            if rewinds == self._rewinds:
                logger.warning("%s", error)
                header = await self._partition.batch_at(position)
                assert header is not None, "the log keeps what it has shown"
                return self._damaged(header.base_offset, header.next_offset)
        except (UnknownTopicError, MemoryShortError):
            pass  # Deleted this moment, which the caller sees too; or to be read later.
        return None

    def _ranges(self) -> list[StoredBatch]:
        """Return the next batches as ranges of a file, as far as they can be."""
        try:
            found = self._partition.sound_batches(
                self.position, RANGES_BYTES, _ANY_COUNT, self._magic
            )
            if not found:
                return []
            end = found[-1].header.next_offset
            committed = self._partition.committed_in(self.position, end)
        except (OffsetOutOfRangeError, UnknownTopicError):
            return []  # A read says what becomes of that.
        return list(takewhile(partial(_is_plain, committed), found))

    def _split(self) -> bool:
        """Have the next batches of what was read ready, of which none may be for readers; False
        where there are none.
        """
        found = next(self._unsplit, None)
        if found is None:
            self._held.set(0)
            return False
        if found:
            self._ahead.extend(found)
            self.position = max(self.position, found[0].header.base_offset)
        return True

    def _entries(self, buffers: list[Buffer], committed: Committed) -> Iterator[list[Entry]]:
        """Yield what is for readers of some batches after the other, once all before is taken."""
        expected = following = self.position
        for buffer in buffers:
            view = memoryview(buffer)
            for batches, gaps, end in visible(view, committed, expected):
                following = end
                if batches:
                    expected = batches[-1][1].next_offset
                if gaps:
                    self._pass(gaps)
                yield [Entry(header, view[at : at + header.size]) for at, header in batches]
        if following > expected:
            self._pass([(expected, following)])
            self.position = max(self.position, following)

    def _pass(self, gaps: list[tuple[int, int]]) -> None:
        """What was read has nothing in these ranges."""
        self._meets_gaps = True
        self._skipped(gaps)
        self._partition.unseen.note_all(self._magic, gaps)

    def _damaged(self, start: int, end: int) -> tuple[Committed, list[Buffer]]:
        logger.warning("messages %d to %d are damaged, as consumers will find", start, end - 1)
        return Committed(), [damaged_entry(start, end)]

    def _skip(self, start: int, end: int) -> None:
        if self.position == start and end > start:
            self.position = end
            self._skipped([(start, end)])


def _is_plain(committed: Committed, batch: StoredBatch) -> bool:
    """Whether nobody has to look into a batch before it goes out."""
    return not (batch.header.attributes & _LOOKED_INTO or committed.hides(batch.header))
