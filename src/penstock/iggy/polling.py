"""Messages of one partition as Iggy's batches, whichever protocol wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.batches import Cut, cut
from penstock.iggy.wire.batch import read_batch_header
from penstock.limits import IGGY_POLL_BYTES, IGGY_READ_BYTES
from penstock.log.errors import CorruptBatchError, OffsetOutOfRangeError
from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.records.errors import MalformedBatchError
from penstock.session import in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import memory
    from penstock.broker.topics.partition import Partition
    from penstock.session import Buffer, Part

_MESSAGE_BYTES: Final = 1024
"""What a message is taken to be before the first one is seen."""


class Polled:
    """The batches of a poll's reply; `last_offset` means something where there are messages."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.size = self.held_bytes = 0
        self.messages = 0
        self.last_offset = -1

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
        self.parts += taken.parts
        self.size += sum(map(len, taken.parts))
        self.held_bytes += in_memory(taken.parts)
        self.messages += taken.messages
        self.last_offset = max(self.last_offset, taken.last_offset)


async def poll(
    partition: Partition, start: int, count: int, *, since_us: int = 0, from_file: bool = False
) -> Polled:
    """Read up to `count` messages from offset `start` on.

    With `from_file`, large batches that are wanted whole are ranges of a file where they can be.
    Batches that the server took before `since_us` are left out. Fewer where memory is short, empty
    at the end of the log; a start before the log's own means the log's. Raises what Partition.read
    raises, unless there are messages to hand out before the place where it does.
    """
    position = max(start, partition.start_offset)
    polled = Polled()
    from_file = from_file and not since_us  # The time is in what is not read.
    with partition.memory.reading() as held:
        while polled.messages < count and position < partition.readable_end():
            following: int | None = position
            if from_file:
                following = _add_from_file(polled, partition, position, count)
            if following == position:
                following = await _read(polled, partition, position, count, since_us, held)
            if following is None:
                break
            position = following
    return polled


def _add_from_file(polled: Polled, partition: Partition, position: int, count: int) -> int:
    """Add large batches that are wanted whole; return where to go on, `position` if at none."""
    left = count - polled.messages
    for header, body in partition.sound_batches(position, polled.bytes_left, left, Magic.IGGY):
        polled.add(Cut([body], header.record_count, header.last_offset))
        position = header.next_offset
    return position


async def _read(
    polled: Polled,
    partition: Partition,
    position: int,
    count: int,
    since_us: int,
    held: memory.Reading,
) -> int | None:
    """Read on, and return where to go on from there; None where the reply is to end."""
    try:
        max_bytes = polled.size_of(count - polled.messages)
        max_bytes = min(max_bytes, partition.bytes_from(position))
        if polled.messages and not partition.memory.fits(max_bytes, held.size):
            return None
        await held.grant(max_bytes)
        chunk = await partition.read(position, max_bytes, Magic.IGGY)
    except OffsetOutOfRangeError:
        if position >= partition.start_offset:
            raise
        return partition.start_offset  # It was given up this moment.
    except (CorruptBatchError, MalformedBatchError):
        if polled.messages == 0:
            raise
        return None
    if not chunk:
        return None
    for last_offset, batch in _batches(chunk):
        if polled.messages and polled.size + len(batch) > IGGY_POLL_BYTES:
            return None
        # A batch without a body says that its offsets hold no messages.
        if batch and read_batch_header(batch).base_timestamp >= since_us:
            polled.add(cut(batch, last_offset, position, count - polled.messages))
        position = last_offset + 1
    held.set(polled.held_bytes)
    return position


def _batches(chunk: list[Buffer]) -> Iterator[tuple[int, memoryview]]:
    """Yield each batch's last offset and its body."""
    for stored in chunk:
        view = memoryview(stored)
        for position, header in walk(view):
            yield header.last_offset, view[position + HEADER_SIZE : position + header.size]
