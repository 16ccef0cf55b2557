"""Kafka's records of magic 2 (KIP-98), read into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import ATTRIBUTE_COMPRESSION, Magic
from penstock.records import field, header_kinds
from penstock.records.batch_headers import check_read, malformed
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.kafka.compression import inflate_kafka
from penstock.records.kernels.arguments import BytesIn, NumbersIn, TableIn, TableOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_half, read_zigzag, unzigzag
from penstock.records.kernels.times import microseconds

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Numbers
    from penstock.records.inflation import Inflation

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers, its length included."""
_SMALLEST_HEADER = 2
_CONTINUED: Final = 0x808080
"""The bits that say of each of three bytes that its number goes on in the next."""


class KafkaDecoder:
    """See `penstock.records.decoding.Decoder`."""

    magic: Final = Magic.KAFKA

    def __init__(self, _data: Bytes, batches: Numbers) -> None:
        self._batches = batches

    def inflate(self, inflation: Inflation) -> None:
        batches = self._batches
        codecs = batches[field.ATTRIBUTES] & ATTRIBUTE_COMPRESSION
        compressed = (codecs != 0) & (batches[field.MAGIC] == self.magic)
        chosen = np.flatnonzero(compressed & (batches[field.RECORDS] > 0))
        if not len(chosen):
            return
        data, places = inflation.data.data, []
        bodies = batches[[field.BODY_START, field.BODY_END]][:, chosen].T.tolist()
        for batch, (start, end) in zip(chosen.tolist(), bodies, strict=True):
            try:
                inflated = inflate_kafka(int(codecs[batch]), data[start:end], inflation.left)
            except OverLimitError:
                raise  # Which says something else of the batch than that it is malformed.
            except MalformedBatchError as error:
                raise malformed(batches, batch, str(error)) from error
            places.append(inflation.add(inflated))
        found = np.array(places)
        batches[field.BODY_START, chosen] = found[:, 0]
        batches[field.BODY_END, chosen] = found[:, 1]

    def room(self) -> Numbers:
        sizes: Numbers = self._batches[field.BODY_END] - self._batches[field.BODY_START]
        return sizes // SMALLEST_RECORD

    def read_records(self, data: Bytes, records: Numbers, *, headers: bool) -> Numbers:  # noqa: ARG002
        check_read(self._batches, read_kafka_records(data, self._batches, records))
        return records

    def read_headers(self, columns: Columns) -> None:
        tables = (columns.batches, columns.records, columns.header_start, columns.headers)
        check_read(columns.batches, read_kafka_headers(columns.data, *tables))

    def complete(self, columns: Columns, *, headers: bool) -> Columns:  # noqa: ARG002
        return columns


@helper
def _span(position: int, size: int, end: int) -> tuple[int, int, int]:
    """Return start and size of a nullable byte string, and the position behind it."""
    if position == MALFORMED or size < -1 or size > end - position:
        return int64(0), int64(0), int64(MALFORMED)
    return position, size, position + max(size, 0)


@helper
def _read_span(data: BytesIn, position: int, end: int) -> tuple[int, int, int]:
    """Read a nullable byte string; returns its start, its size and the position behind it."""
    size, position = read_zigzag(data, position, end)
    return _span(position, size, end)


@helper
def _read_deltas(data: BytesIn, position: int, end: int) -> tuple[int, int, int, int]:
    """Read what stands before a record's key: the deltas of its timestamp and of its offset, and
    the size of the key, with the position behind them.

    No record is so small that there are not four bytes. Where three of them are three numbers, as
    mostly, it is one step.
    """
    four = load_half(data, position)
    if four & _CONTINUED == 0:
        time, offset, size = four & 0x7F, (four >> 8) & 0x7F, (four >> 16) & 0x7F
        return unzigzag(time), unzigzag(offset), unzigzag(size), position + 3
    time, position = read_zigzag(data, position, end)
    offset, position = read_zigzag(data, position, end)
    size, position = read_zigzag(data, position, end)
    return time, offset, size, position


@helper
def _read_record(data: BytesIn, position: int, end: int, records: TableOut, row: int) -> int:
    """Read one record's fields as deltas; returns the position behind it, or MALFORMED."""
    size, position = read_zigzag(data, position, end)
    if position == MALFORMED or size < SMALLEST_RECORD - 1 or size > end - position:
        return int64(MALFORMED)
    end = position + size
    # The attributes byte, which is unused, is skipped.
    time, offset, key_size, position = _read_deltas(data, position + 1, end)
    records[field.TIMESTAMP, row] = time
    records[field.OFFSET, row] = offset
    records[field.KEY_START, row], records[field.KEY_SIZE, row], position = _span(
        position, key_size, end
    )
    records[field.VALUE_START, row], records[field.VALUE_SIZE, row], position = _read_span(
        data, position, end
    )
    headers = int64(0)
    if position == end - 1 and data[position] == 0:
        position = end  # Most have no headers.
    else:
        headers, position = read_zigzag(data, position, end)
        if position == MALFORMED or headers < 0 or headers > (end - position) // _SMALLEST_HEADER:
            return int64(MALFORMED)
        if headers == 0 and position != end:
            return int64(MALFORMED)
    records[field.HEADER_COUNT, row] = headers
    records[field.BLOCK_START, row] = position
    records[field.BLOCK_END, row] = end
    return end


@kernel
def read_kafka_records(data: BytesIn, batches: TableIn, records: TableOut) -> int:
    """Fill the records of every Kafka batch; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.KAFKA or batches[field.RECORDS, batch] == 0:
            continue
        position = batches[field.BODY_START, batch]
        end = batches[field.BODY_END, batch]
        first = batches[field.FIRST_RECORD, batch]
        last = int64(-1)
        for row in range(first, first + batches[field.RECORDS, batch]):
            position = _read_record(data, position, end, records, row)
            if position == MALFORMED:
                return batch
            delta = records[field.OFFSET, row]
            if delta <= last or delta > batches[field.LAST_DELTA, batch]:
                return batch
            last = delta
            records[field.OFFSET, row] = batches[field.BASE_OFFSET, batch] + delta
            time = batches[field.BASE_TIMESTAMP, batch] + records[field.TIMESTAMP, row]
            records[field.TIMESTAMP, row] = microseconds(time)
        if position != end:
            return batch
    return -1


@kernel
def read_kafka_headers(
    data: BytesIn, batches: TableIn, records: TableIn, header_start: NumbersIn, headers: TableOut
) -> int:
    """Fill the headers of every Kafka record; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.KAFKA:
            continue
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            position = records[field.BLOCK_START, row]
            end = records[field.BLOCK_END, row]
            for header in range(header_start[row], header_start[row + 1]):
                start, size, position = _read_span(data, position, end)
                if position == MALFORMED or size < 0:
                    return batch
                headers[field.NAME_START, header] = start
                headers[field.NAME_SIZE, header] = size
                start, size, position = _read_span(data, position, end)
                if position == MALFORMED:
                    return batch
                headers[field.CONTENT_START, header] = start
                headers[field.CONTENT_SIZE, header] = size
                headers[field.KINDS, header] = header_kinds.OF_BYTES
            if position != end:
                return batch
    return -1
