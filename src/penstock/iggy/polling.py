"""Messages of one partition as Iggy's batches, whichever protocol wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.batches import cut
from penstock.iggy.wire.batch import read_batch_header
from penstock.limits import IGGY_POLL_BYTES, IGGY_READ_BYTES
from penstock.log.errors import CorruptBatchError
from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import memory
    from penstock.broker.topics.partition import Partition
    from penstock.iggy.batches import Cut
    from penstock.session import Buffer

_MESSAGE_BYTES: Final = 1024
"""What a message is taken to be before the first one is seen."""


class Polled:
    """The batches of a poll's reply; `last_offset` means something where there are messages."""

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.size = 0
        self.messages = 0
        self.last_offset = -1

    def size_of(self, messages: int) -> int:
        """Return how much to read for so many more messages: each read byte is checksummed."""
        each = self.size // self.messages if self.messages else _MESSAGE_BYTES
        return min(each * messages, IGGY_READ_BYTES)

    def add(self, taken: Cut) -> None:
        """Put part of a batch behind the others."""
        self.parts += taken.parts
        self.size += sum(map(len, taken.parts))
        self.messages += taken.messages
        self.last_offset = max(self.last_offset, taken.last_offset)


async def poll(partition: Partition, start: int, count: int, *, since_us: int = 0) -> Polled:
    """Read up to `count` messages from offset `start` on.

    Batches that the server took before `since_us` are left out. Fewer where memory is short, empty
    at the end of the log; a start before the log's own means the log's. Raises what Partition.read
    raises, unless there are messages to hand out before the place where it does.
    """
    position = max(start, partition.start_offset)
    polled = Polled()
    with partition.memory.reading() as held:
        await _fill(polled, partition, position, count, since_us, held)
    return polled


async def _fill(
    polled: Polled,
    partition: Partition,
    position: int,
    count: int,
    since_us: int,
    held: memory.Reading,
) -> None:
    while polled.messages < count and position < partition.readable_end():
        try:
            max_bytes = polled.size_of(count - polled.messages)
            if polled.messages and not partition.memory.fits(max_bytes, held.size):
                break
            await held.grant(max_bytes)
            chunk = await partition.read(position, max_bytes, Magic.IGGY)
        except (CorruptBatchError, MalformedBatchError):
            if polled.messages == 0:
                raise
            break
        if not chunk:
            break
        for last_offset, batch in _batches(chunk):
            if polled.messages and polled.size + len(batch) > IGGY_POLL_BYTES:
                return
            # A batch without a body says that its offsets hold no messages.
            if batch and read_batch_header(batch).base_timestamp >= since_us:
                polled.add(cut(batch, last_offset, position, count - polled.messages))
            position = last_offset + 1
        held.set(polled.size)


def _batches(chunk: list[Buffer]) -> Iterator[tuple[int, memoryview]]:
    """Yield each batch's last offset and its body."""
    for stored in chunk:
        view = memoryview(stored)
        for position, header in walk(view):
            yield header.last_offset, view[position + HEADER_SIZE : position + header.size]
