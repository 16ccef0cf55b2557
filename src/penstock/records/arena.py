"""Buffers that grow: bytes that are made up for records, or taken out of a larger buffer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.limits import CONVERTED_BATCH_BYTES
from penstock.records import field
from penstock.records.columns import Bytes, Numbers
from penstock.records.errors import OverLimitError
from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersIn, NumbersOut, int64
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import copy_bytes

if TYPE_CHECKING:
    from penstock.records.columns import Columns


@dataclass(slots=True)
class Arena:
    """A buffer whose parts are joined at the end: each one's place is known when it is added."""

    parts: list[Bytes] = dataclasses.field(default_factory=list)
    size: int = 0

    @classmethod
    def behind(cls, data: Bytes) -> Arena:
        return cls([data], len(data))

    def add(self, part: Bytes) -> int:
        """Add a part; returns its position."""
        position = self.size
        self.parts.append(part)
        self.size += len(part)
        return position

    def add_bytes(self, part: bytes) -> int:
        """Add a part; returns its position."""
        return self.add(np.frombuffer(part, np.uint8))

    def gather(self, data: Bytes, starts: Numbers, sizes: Numbers) -> Numbers:
        """Add the spans of `data` whose size is not negative; returns the starts of all."""
        part = np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
        placed = np.empty(len(starts), np.int64)
        copy_spans(data, starts, sizes, self.add(part), placed, part)
        return placed

    def join(self) -> Bytes:
        """Return all parts as one buffer, which is the first where there is no other."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


def checked_size(size: int) -> int:
    """Return how many bytes are to be made up; raises OverLimitError where they are too many."""
    if size > CONVERTED_BATCH_BYTES:
        raise OverLimitError(f"over {CONVERTED_BATCH_BYTES} bytes in another encoding")
    return size


def header_arena(columns: Columns) -> Arena:
    """Return an arena behind the bytes of the headers, which get a buffer of their own.

    Headers are small beside the values, so they are moved where something is to be added to
    them, and the values never are.
    """
    if columns.header_data is columns.data:
        arena, headers = Arena(), columns.headers
        for start, size in (
            (field.NAME_START, field.NAME_SIZE),
            (field.CONTENT_START, field.CONTENT_SIZE),
        ):
            headers[start] = arena.gather(columns.data, headers[start], headers[size])
        columns.header_data = arena.join()
    return Arena.behind(columns.header_data)


@kernel
def copy_spans(
    data: BytesIn, starts: NumbersIn, sizes: NumbersIn, base: int, placed: NumbersOut, out: BytesOut
) -> None:
    """Copy spans one behind the other, and write where they are if `out` lies at `base`."""
    position = int64(0)
    for span in range(len(starts)):
        placed[span] = base + position
        if sizes[span] > 0:
            copy_bytes(out, position, data, starts[span], sizes[span])
            position += sizes[span]
