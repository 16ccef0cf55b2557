"""Messages of one partition as Iggy's batches, whichever protocol wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.iggy.batches import Cut, cut
from penstock.iggy.kept import Run
from penstock.limits import IGGY_POLL_BYTES, IGGY_READ_AHEAD_BYTES, IGGY_READ_BYTES
from penstock.log.errors import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.header import Magic
from penstock.memory import MemoryShortError
from penstock.records.errors import MalformedBatchError
from penstock.session import in_memory

if TYPE_CHECKING:
    from penstock import memory
    from penstock.broker.topics.partition import Partition
    from penstock.iggy.kept import Kept
    from penstock.session import Part

_MESSAGE_BYTES: Final = 1024
"""What a message is taken to be before the first one is seen."""


class Polled:
    """The batches of a poll's reply; `last_offset` means something where there are messages.

    `edition` is the partition's before the first of them was read.
    """

    def __init__(self, edition: tuple[int, int]) -> None:
        self.edition = edition
        self.cuts: list[Cut] = []
        self.size = self.held_bytes = 0
        self.messages = 0
        self.last_offset = -1

    @property
    def parts(self) -> list[Part]:
        """All of them as they go out to whoever reads batches."""
        return [part for cut in self.cuts for part in cut.parts]

    @property
    def bytes_left(self) -> int:
        """How much more the reply takes; 1 where that is nothing."""
        return max(1, IGGY_POLL_BYTES - self.size)

    def size_of(self, messages: int) -> int:
        """Return how much to read for so many more messages: each read byte is checksummed."""
        each = self.size // self.messages if self.messages else _MESSAGE_BYTES
        return min(each * messages, IGGY_READ_BYTES, self.bytes_left)

    def add(self, taken: Cut) -> None:
        """Put part of a batch behind the others."""
        if taken.messages:
            self.cuts.append(taken)
        self.size += sum(map(len, taken.parts))
        self.held_bytes += in_memory(taken.parts)
        self.messages += taken.messages
        self.last_offset = max(self.last_offset, taken.last_offset)


class Wanted(NamedTuple):
    """Up to so many messages from offset `start` on, but for what the server took before a time."""

    start: int
    messages: int
    since_us: int = 0


def poll_kept(kept: Kept, partition: Partition, wanted: Wanted) -> Polled | None:
    """Return what `poll` would, where nothing is to be read for that; None elsewhere."""
    polled = Polled(partition.edition)
    position = _first_seen(partition, wanted.start)
    end = partition.readable_end()
    if position < end:
        run = kept.find(partition, position)
        if run is None:
            return None
        following = _take(polled, run, position, wanted)
        if following is not None and following < end and polled.messages < wanted.messages:
            return None
    return polled


async def poll(
    kept: Kept, partition: Partition, wanted: Wanted, *, from_file: bool = False
) -> Polled:
    """Read what is wanted.

    With `from_file`, large batches that are wanted whole are ranges of a file where they can be.
    Fewer where memory is short, empty at the end of the log; a start before the log's own means
    the log's. Raises what Partition.read raises, unless there are messages to hand out before the
    place where it does.
    """
    position = _first_seen(partition, wanted.start)
    polled = Polled(partition.edition)
    from_file = from_file and not wanted.since_us  # The time is in what is not read.
    with partition.memory.reading() as held:
        while polled.messages < wanted.messages and position < partition.readable_end():
            following: int | None = position
            if from_file:
                following = _add_from_file(polled, partition, position, wanted.messages)
            if following == position:
                try:
                    following = await _read(kept, polled, partition, position, wanted, held)
                except MemoryShortError:
                    break
            if following is None:
                break
            # What follows may have been given up while others were read.
            position = _first_seen(partition, following)
    return polled


def _first_seen(partition: Partition, offset: int) -> int:
    """Return where a poll from an offset on may begin to read."""
    return partition.unseen.behind(Magic.IGGY, max(offset, partition.start_offset))


def _add_from_file(polled: Polled, partition: Partition, position: int, count: int) -> int:
    """Add large batches that are wanted whole; return where to go on, `position` if at none."""
    left = count - polled.messages
    batches = partition.sound_batches(position, polled.bytes_left, left, Magic.IGGY)
    if not batches:
        return position
    committed = partition.committed_in(position, batches[-1].header.next_offset)
    for batch in batches:
        header, body = batch
        if committed.hides(header):
            break
        polled.add(Cut([body], header.record_count, header.last_offset, batch.read_now))
        position = header.next_offset
    return position


async def _read(
    kept: Kept,
    polled: Polled,
    partition: Partition,
    position: int,
    wanted: Wanted,
    held: memory.Reading,
) -> int | None:
    """Read on, and return where to go on from there; None where the reply is to end."""
    run = kept.find(partition, position)
    if run is not None:
        following = _take(polled, run, position, wanted)
        if following != position:
            return following
    try:
        max_bytes = _size_of_read(polled, partition, position, wanted)
        if run is not None and position == run.end:
            max_bytes = max(max_bytes, IGGY_READ_AHEAD_BYTES)
        max_bytes = min(max_bytes, partition.bytes_from(position))
        if polled.messages and not partition.memory.fits(max_bytes, held.size):
            return None
        await held.grant(max_bytes)
        edition = partition.edition
        taken = await partition.read_on(position, max_bytes, Magic.IGGY)
        committed = partition.committed_in(position, taken.next_offset)
    except OffsetOutOfRangeError:
        if position >= partition.start_offset:
            raise
        return partition.start_offset  # It was given up this moment.
    except (CorruptBatchError, MalformedBatchError):
        if polled.messages == 0:
            raise
        return None
    if not taken.parts:
        return None
    run = Run(taken, position, edition, committed, partition.unseen)
    kept.keep(partition, run)
    following = _take(polled, run, position, wanted)
    held.set(polled.held_bytes)
    return following


def _size_of_read(polled: Polled, partition: Partition, position: int, wanted: Wanted) -> int:
    left = wanted.messages - polled.messages
    size = polled.size_of(left)
    # A batch that is larger than what is asked for is looked through before it is read.
    found = partition.sound_batches(position, polled.bytes_left, left, Magic.IGGY)
    return max(size, found[0].header.size) if found else size


def _take(polled: Polled, run: Run, position: int, wanted: Wanted) -> int | None:
    """Add what is wanted of a run; return where to go on, None where the reply is to end."""
    for batch in run.batches(position):
        if polled.messages and polled.size + len(batch.body) > IGGY_POLL_BYTES:
            return None
        if batch.header is not None and batch.header.base_timestamp >= wanted.since_us:
            polled.add(cut(batch, position, wanted.messages - polled.messages))
        position = batch.last_offset + 1
        if polled.messages >= wanted.messages:
            break
    return position
