"""Records as columns: where each one's key, value and headers lie in one buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.log.header import ATTRIBUTE_LOG_APPEND_TIME
from penstock.records import field

if TYPE_CHECKING:
    from penstock.session import Buffer

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(slots=True)
class Columns:
    """The records of one or more batches in the order of the log, in tables of `field`s.

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
        return _row(self.records, field.OFFSET)

    @property
    def timestamps(self) -> Numbers:
        return _row(self.records, field.TIMESTAMP)

    @property
    def timestamp_types(self) -> Numbers:
        """0 where the producer set the timestamp, 1 where the broker did (KIP-32)."""
        appended = self.batches[field.ATTRIBUTES] & ATTRIBUTE_LOG_APPEND_TIME
        return np.repeat((appended != 0).astype(np.int64), self.batches[field.RECORDS])

    @property
    def header_rows(self) -> Numbers:
        """For each header the index of its record."""
        return np.repeat(np.arange(len(self)), np.diff(self.header_start))

    def key(self, record: int) -> bytes | None:
        start, size = self.records[[field.KEY_START, field.KEY_SIZE], record]
        return _bytes(self.data, start, size)

    def value(self, record: int) -> bytes | None:
        start, size = self.records[[field.VALUE_START, field.VALUE_SIZE], record]
        return _bytes(self.data, start, size)

    def headers_of(self, record: int) -> list[tuple[bytes, bytes | None]]:
        """Return name and value of each header of a record, in order."""
        return [
            (self.name(header), self.content(header))
            for header in range(self.header_start[record], self.header_start[record + 1])
        ]

    def name(self, header: int) -> bytes:
        start = self.headers[field.NAME_START, header]
        return self.header_data[start : start + self.headers[field.NAME_SIZE, header]].tobytes()

    def content(self, header: int) -> bytes | None:
        start, size = self.headers[[field.CONTENT_START, field.CONTENT_SIZE], header]
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
