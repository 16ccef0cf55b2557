"""Iggy's frames, read into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.batch_headers import check_read
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.iggy import layout
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import is_text, load_half, load_word, same_bytes

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Numbers
    from penstock.records.inflation import Inflation

_KEY = reserved.constant(reserved.KEY)
_TOMBSTONE = reserved.constant(reserved.TOMBSTONE)
_HEX = reserved.constant(b"0123456789abcdef")
_RESERVED = reserved.constant(reserved.PREFIX)
ID_DIGITS = 32
_LATEST_ORIGIN = (1 << 63) - (1 << 33)


class IggyDecoder:
    """See `penstock.records.decoding.Decoder`."""

    magic: Final = Magic.IGGY

    def __init__(self, _data: Bytes, batches: Numbers) -> None:
        self._batches = batches

    def inflate(self, inflation: Inflation) -> None:
        """Nothing: Iggy's clients don't compress batches."""

    def room(self) -> Numbers:
        sizes: Numbers = self._batches[field.BODY_END] - self._batches[field.BODY_START]
        return (sizes - layout.BATCH_HEADER_SIZE) // layout.FRAME_SIZE

    def read_records(self, data: Bytes, records: Numbers, *, headers: bool) -> Numbers:  # noqa: ARG002
        check_read(self._batches, read_iggy_records(data, self._batches, records))
        return records

    def read_headers(self, columns: Columns) -> None:
        tables = (columns.batches, columns.records, columns.header_start, columns.headers)
        read_iggy_headers(columns.data, *tables)

    def complete(self, columns: Columns, *, headers: bool) -> Columns:
        """Add the ids."""
        if not headers:
            return columns
        starts, sizes = np.empty((2, len(columns)), np.int64)
        ids = np.empty(len(columns) * ID_DIGITS, np.uint8)
        end = write_ids(columns.data, columns.batches, columns.records, starts, sizes, ids)
        if end == 0:
            return columns
        additions = Additions(columns)
        additions.add_text(reserved.IGGY_ID, ids[:end], starts, sizes)
        return additions.apply()


@helper
def _is(data: BytesIn, entry: int, name: BytesIn) -> bool:
    return same_bytes(data, entry + 5, load_half(data, entry + 1), name)


@helper
def _content(data: BytesIn, entry: int) -> int:
    """Return where the kind of an entry's value lies, in front of its size and its bytes."""
    return entry + 5 + load_half(data, entry + 1)


@helper
def _is_key(content: int, records: TableIn, row: int) -> bool:
    """Whether the entry whose value is here has become the record's key."""
    return records[field.KEY_SIZE, row] >= 0 and records[field.KEY_START, row] == content + 5


@helper
def _read_block(data: BytesIn, records: TableOut, row: int) -> bool:
    """Find the key and the tombstone among a frame's user headers, and count the others."""
    position = records[field.BLOCK_START, row]
    end = records[field.BLOCK_END, row]
    count = 0
    while position < end:
        following = layout.entry_end(data, position, end)
        if following < 0:
            return False
        if records[field.KEY_SIZE, row] < 0 and _is(data, position, _KEY):
            content = _content(data, position)
            records[field.KEY_START, row] = content + 5
            records[field.KEY_SIZE, row] = following - content - 5
        elif records[field.VALUE_SIZE, row] == 0 and _is(data, position, _TOMBSTONE):
            records[field.VALUE_SIZE, row] = -1
        else:
            count += 1
        position = following
    records[field.HEADER_COUNT, row] = count
    return True


@helper
def _body_count(data: BytesIn, start: int, end: int) -> int:
    """Return the number of frames that a body of sound layout declares, or -1."""
    if (
        end - start < layout.BATCH_HEADER_SIZE
        or load_word(data, start + layout.LENGTH_AT) != end - start
    ):
        return int64(-1)
    if load_word(data, start + layout.ORIGIN_TIMESTAMP_AT) >= _LATEST_ORIGIN:
        return int64(-1)
    return load_half(data, start + layout.COUNT_AT)


@kernel
def read_iggy_records(data: BytesIn, batches: TableIn, records: TableOut) -> int:
    """Fill the records of every Iggy batch; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.IGGY or batches[field.RECORDS, batch] == 0:
            continue
        start = batches[field.BODY_START, batch]
        batch_end = batches[field.BODY_END, batch]
        count = _body_count(data, start, batch_end)
        if count != batches[field.RECORDS, batch]:
            return batch
        origin = int64(load_word(data, start + layout.ORIGIN_TIMESTAMP_AT))
        position = start + layout.BATCH_HEADER_SIZE
        last = int64(-1)
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + count):
            end = layout.frame_end(data, position, batch_end)
            if end < 0:
                return batch
            delta = load_half(data, position + layout.FRAME_OFFSET_AT)
            if delta <= last or delta > batches[field.LAST_DELTA, batch]:
                return batch
            last = delta
            records[field.OFFSET, row] = batches[field.BASE_OFFSET, batch] + delta
            records[field.TIMESTAMP, row] = origin + load_half(
                data, position + layout.FRAME_TIMESTAMP_AT
            )
            records[field.KEY_START, row] = 0
            records[field.KEY_SIZE, row] = -1
            records[field.VALUE_START, row] = position + layout.FRAME_SIZE
            records[field.VALUE_SIZE, row] = load_half(data, position + layout.FRAME_PAYLOAD_AT)
            records[field.BLOCK_START, row] = end - load_half(
                data, position + layout.FRAME_HEADERS_AT
            )
            records[field.BLOCK_END, row] = end
            if not _read_block(data, records, row):
                return batch
            position = end
        if position != batch_end:
            return batch
    return -1


@kernel
def read_iggy_headers(
    data: BytesIn, batches: TableIn, records: TableIn, header_start: NumbersIn, headers: TableOut
) -> None:
    """Fill the headers of every record of an Iggy batch; its blocks have been checked."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.IGGY:
            continue
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            position = records[field.BLOCK_START, row]
            end = records[field.BLOCK_END, row]
            header = header_start[row]
            tombstone_left = records[field.VALUE_SIZE, row] < 0
            while position < end:
                following = layout.entry_end(data, position, end)
                content = _content(data, position)
                if tombstone_left and _is(data, position, _TOMBSTONE):
                    # Only the first one was not counted: another is a header like any other.
                    tombstone_left = False
                elif not _is_key(content, records, row):
                    headers[field.NAME_START, header] = position + 5
                    headers[field.NAME_SIZE, header] = content - position - 5
                    headers[field.CONTENT_START, header] = content + 5
                    headers[field.CONTENT_SIZE, header] = following - content - 5
                    headers[field.KINDS, header] = int64(data[position]) << 4 | data[content]
                    header += 1
                position = following


@helper
def _write_hex(out: BytesOut, position: int, number: int) -> int:
    """Write the 16 hexadecimal digits of a number; returns the position behind them."""
    for shift in range(60, -1, -4):
        out[position] = _HEX[(number >> uint64(shift)) & uint64(15)]
        position += 1
    return position


@kernel
def write_ids(
    data: BytesIn,
    batches: TableIn,
    records: TableIn,
    starts: NumbersOut,
    sizes: NumbersOut,
    out: BytesOut,
) -> int:
    """Write the id of every message of an Iggy batch that has one, as 32 hexadecimal digits.

    Other messages have the size -1. Returns the position behind the last id.
    """
    position = int64(0)
    starts[:] = 0
    sizes[:] = -1
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.IGGY:
            continue
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            start = records[field.VALUE_START, row] - layout.FRAME_SIZE + layout.FRAME_ID_AT
            low = load_word(data, start)
            high = load_word(data, start + 8)
            if low | high:
                starts[row] = position
                sizes[row] = ID_DIGITS
                position = _write_hex(out, _write_hex(out, position, high), low)
    return position


@helper
def is_reserved(data: BytesIn, headers: TableIn, header: int) -> bool:
    start = headers[field.NAME_START, header]
    longer = headers[field.NAME_SIZE, header] > len(_RESERVED)
    return longer and same_bytes(data, start, len(_RESERVED), _RESERVED)


@helper
def _is_assumed(data: BytesIn, headers: TableIn, header: int, text: int) -> bool:
    """Whether these kinds are what is assumed where none are listed."""
    kinds = headers[field.KINDS, header]
    if kinds == header_kinds.UNKNOWN:
        return True
    start = headers[field.CONTENT_START, header]
    if text and is_text(data, start, headers[field.CONTENT_SIZE, header]):
        return kinds == header_kinds.OF_TEXT
    return kinds == header_kinds.OF_BYTES


@kernel
def write_kinds(
    data: BytesIn, batches: TableIn, headers: TableIn, header_start: NumbersIn, text: int,
    starts: NumbersOut, sizes: NumbersOut, out: BytesOut,
) -> int:  # fmt: skip
    """Write the kinds of each Iggy message's own headers, two hexadecimal digits a header.

    A size is -1 where all kinds are those that are assumed without a list: named by a string, and
    with bytes as the value, or if `text` is not 0, with a string where the value is one. Returns
    the position behind the last kinds that have to be listed.
    """
    position = int64(0)
    starts[:] = 0
    sizes[:] = -1
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.IGGY:
            continue
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            end = position
            assumed = True
            for header in range(header_start[row], header_start[row + 1]):
                if is_reserved(data, headers, header):
                    continue
                assumed = assumed and _is_assumed(data, headers, header, text)
                kinds = headers[field.KINDS, header]
                if kinds == header_kinds.UNKNOWN:
                    kinds = int64(header_kinds.OF_BYTES)
                out[end] = _HEX[kinds >> 4]
                out[end + 1] = _HEX[kinds & 15]
                end += 2
            if not assumed:
                starts[row] = position
                sizes[row] = end - position
                position = end
    return position
