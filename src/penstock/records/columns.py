"""Records as columns: where each one's key, value and headers lie in one buffer.

The tables are arrays of int64 with one field a row and one record (header, batch) a column, so a
kernel takes a table as one argument and each field is a contiguous array. A size of -1 is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock.session import Buffer

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

# Fields of a record.
OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY_START: Final = 2
KEY_SIZE: Final = 3
VALUE_START: Final = 4
VALUE_SIZE: Final = 5
HEADER_COUNT: Final = 6
BLOCK_START: Final = 7
BLOCK_END: Final = 8
RECORD_FIELDS: Final = 9

# Fields of a header.
NAME_START: Final = 0
NAME_SIZE: Final = 1
CONTENT_START: Final = 2
CONTENT_SIZE: Final = 3
KINDS: Final = 4
HEADER_FIELDS: Final = 5

# Kinds of a header, as Iggy numbers them: the name's in the high half byte, the value's in the low.
KIND_RAW: Final = 1
KIND_STRING: Final = 2
KINDS_UNTOLD: Final = 0
"""Of a header that had to be packed to be said at all."""
KINDS_OF_BYTES: Final = KIND_STRING << 4 | KIND_RAW
KINDS_OF_TEXT: Final = KIND_STRING << 4 | KIND_STRING

# Fields of a batch. Positions are in the buffer of the records; the body is there uncompressed.
POSITION: Final = 0
MAGIC: Final = 1
BASE_OFFSET: Final = 2
LAST_DELTA: Final = 3
ATTRIBUTES: Final = 4
BASE_TIMESTAMP: Final = 5
MAX_TIMESTAMP: Final = 6
COUNT: Final = 7
BODY_START: Final = 8
BODY_END: Final = 9
FIRST_RECORD: Final = 10
RECORDS: Final = 11
BATCH_FIELDS: Final = 12


@dataclass(slots=True)
class Columns:
    """The records of one or more batches in the order of the log.

    Positions index into `data`, which is the stored bytes themselves where nothing had to be
    inflated or made up: it must be kept as long as the columns are used. Those of headers index
    into `header_data`, which is `data` itself until headers are added. Timestamps are
    microseconds since 1970, -1 where the producer gave none.
    """

    data: Bytes
    header_data: Bytes
    records: Numbers
    headers: Numbers
    header_start: Numbers
    """Index of each record's first header, and at the end the number of all headers."""
    batches: Numbers

    def __len__(self) -> int:
        return int(self.records.shape[1])

    @property
    def offsets(self) -> Numbers:
        return _row(self.records, OFFSET)

    @property
    def timestamps(self) -> Numbers:
        return _row(self.records, TIMESTAMP)

    @property
    def timestamp_types(self) -> Numbers:
        """0 where the producer set the timestamp, 1 where the broker did (KIP-32)."""
        types = (self.batches[ATTRIBUTES] >> 3) & (self.batches[MAGIC] == 2)
        return np.repeat(types, self.batches[RECORDS])

    @property
    def header_rows(self) -> Numbers:
        """For each header the index of its record."""
        return np.repeat(np.arange(len(self)), np.diff(self.header_start))

    def key(self, record: int) -> bytes | None:
        start, size = self.records[[KEY_START, KEY_SIZE], record]
        return _bytes(self.data, start, size)

    def value(self, record: int) -> bytes | None:
        start, size = self.records[[VALUE_START, VALUE_SIZE], record]
        return _bytes(self.data, start, size)

    def headers_of(self, record: int) -> list[tuple[bytes, bytes | None]]:
        """Return name and value of each header of a record, in order."""
        return [
            (self.name(header), self.content(header))
            for header in range(self.header_start[record], self.header_start[record + 1])
        ]

    def name(self, header: int) -> bytes:
        start = self.headers[NAME_START, header]
        return self.header_data[start : start + self.headers[NAME_SIZE, header]].tobytes()

    def content(self, header: int) -> bytes | None:
        start, size = self.headers[[CONTENT_START, CONTENT_SIZE], header]
        return _bytes(self.header_data, start, size)


def as_bytes(buffer: Buffer) -> Bytes:
    """View any buffer as an array of bytes, without a copy."""
    array: Bytes = np.frombuffer(memoryview(buffer), dtype=np.uint8)
    return array


def _bytes(data: Bytes, start: int, size: int) -> bytes | None:
    return None if size < 0 else data[start : start + size].tobytes()


def _row(table: Numbers, field: int) -> Numbers:
    row: Numbers = table[field]
    return row
