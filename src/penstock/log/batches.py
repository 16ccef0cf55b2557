"""Whole batches, as a read returns them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from penstock.log.errors import LogReadError
from penstock.log.header import ATTRIBUTE_CONTROL, walk
from penstock.session import FileRange

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader


class Batches(NamedTuple):
    """Stored batches that follow one another, and what was learnt of them while they were judged.

    So that nobody has to parse their headers again only to know where they end.
    """

    data: memoryview
    base_offset: int
    """The first offset of the first batch."""
    next_offset: int
    """The first offset behind the last batch."""
    magic: int | None
    """The encoding in which readers can have all of them as they are stored; None where there is
    none, or no batch.

    Control batches among others count for none: they are Kafka's, and hold no message for anybody.
    An entry of Pulsar in which messages are marked as compacted out is for no reader.
    """


class StoredBatch(NamedTuple):
    """A batch that was found sound and is not read: its header, and where what follows it is."""

    header: BatchHeader
    body: FileRange

    def read_now(self, target: memoryview) -> None:
        """Fill `target` with what follows the header.

        Raises LogReadError where that is not in memory, or not what it was: to read it as others
        do takes longer, or says what is wrong.
        """
        body = self.body
        try:
            count = os.preadv(body.descriptor, (target,), body.position, os.RWF_NOWAIT)
        except OSError as error:
            raise LogReadError(f"batch {self.header.base_offset}: {error}") from error
        if count < len(target) or crc32c(target, self.header.covered_sum) != self.header.crc:
            raise LogReadError(f"batch {self.header.base_offset} is not all there, or damaged")


def no_batches(offset: int) -> Batches:
    """Return what a read finds where nothing begins at `offset`."""
    return Batches(memoryview(b""), offset, offset, None)


def whole_before(batches: Batches, end: int) -> Batches:
    """Return those of the batches that lie wholly below `end`."""
    size, next_offset = 0, batches.base_offset
    magics: set[int | None] = set()
    of_control: set[int | None] = set()
    for position, header in walk(batches.data):
        if header.next_offset > end:
            break
        size, next_offset = position + header.size, header.next_offset
        is_control = header.attributes & ATTRIBUTE_CONTROL
        (of_control if is_control else magics).add(header.native_magic)
    magics = magics or of_control
    magic = magics.pop() if len(magics) == 1 else None
    return Batches(batches.data[:size], batches.base_offset, next_offset, magic)
