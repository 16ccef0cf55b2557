"""Messages of one partition as Iggy's batches, whichever protocol wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.batches import cut
from penstock.iggy.wire.batch import read_batch_header
from penstock.log.errors import CorruptBatchError
from penstock.log.header import HEADER_SIZE, Magic, walk
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.partition import Partition
    from penstock.iggy.batches import Cut
    from penstock.session import Buffer

READ_BYTES: Final = 1024 * 1024
"""How much is read from the log at once."""
POLL_BYTES_MAX: Final = 16 * 1024 * 1024
"""A poll ends with the batch that reaches this size, even when the client asked for more."""


class Polled:
    """The batches of a poll's reply; `last_offset` means something where there are messages."""

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.size = 0
        self.messages = 0
        self.last_offset = -1

    def add(self, taken: Cut) -> None:
        """Put part of a batch behind the others."""
        self.parts += taken.parts
        self.size += sum(map(len, taken.parts))
        self.messages += taken.messages
        self.last_offset = max(self.last_offset, taken.last_offset)


async def poll(partition: Partition, start: int, count: int, *, since_us: int = 0) -> Polled:
    """Read up to `count` messages from offset `start` on.

    Batches that the server took before `since_us` are left out. Empty at the end of the log; a
    start before the log's own means the log's. Raises what Partition.read raises, unless there are
    messages to hand out before the place where it does.
    """
    position = max(start, partition.log.start_offset)
    polled = Polled()
    while (
        polled.messages < count
        and polled.size < POLL_BYTES_MAX
        and position < partition.log.end_offset
    ):
        try:
            chunk = await partition.read(position, READ_BYTES, Magic.IGGY)
        except (CorruptBatchError, MalformedBatchError):
            if polled.messages == 0:
                raise
            break
        following = _after(partition, position)
        for last_offset, batch in _batches(chunk):
            following = last_offset + 1
            if read_batch_header(batch).base_timestamp >= since_us:
                polled.add(cut(batch, last_offset, position, count - polled.messages))
        position = following
    return polled


def _after(partition: Partition, position: int) -> int:
    # What holds no messages for this reader is not in the chunk at all, and is stepped over.
    header = partition.log.batch_at(position)
    return partition.log.end_offset if header is None else header.next_offset


def _batches(chunk: list[Buffer]) -> Iterator[tuple[int, memoryview]]:
    """Yield each batch's last offset and its body."""
    for stored in chunk:
        view = memoryview(stored)
        for position, header in walk(view):
            yield header.last_offset, view[position + HEADER_SIZE : position + header.size]
