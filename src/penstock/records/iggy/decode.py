"""Iggy's frames, read into columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.records import reserved
from penstock.records.columns import (
    BASE_OFFSET,
    BLOCK_END,
    BLOCK_START,
    BODY_END,
    BODY_START,
    CONTENT_SIZE,
    CONTENT_START,
    FIRST_RECORD,
    HEADER_COUNT,
    KEY_SIZE,
    KEY_START,
    KINDS,
    KINDS_OF_BYTES,
    KINDS_OF_TEXT,
    KINDS_UNTOLD,
    LAST_DELTA,
    MAGIC,
    NAME_SIZE,
    NAME_START,
    OFFSET,
    RECORDS,
    TIMESTAMP,
    VALUE_SIZE,
    VALUE_START,
)
from penstock.records.iggy.batch import (
    BATCH_HEADER_SIZE,
    COUNT_AT,
    FRAME_HEADERS_AT,
    FRAME_ID_AT,
    FRAME_OFFSET_AT,
    FRAME_PAYLOAD_AT,
    FRAME_SIZE,
    FRAME_TIMESTAMP_AT,
    LENGTH_AT,
    ORIGIN_TIMESTAMP_AT,
    entry_end,
    frame_end,
)
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NOTHING,
    NUMBERS,
    NUMBERS_INPUT,
    OUTPUT,
    TABLE,
    TABLE_INPUT,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import is_text, load_half, load_word, same_bytes
from penstock.records.scan import IGGY

_KEY = reserved.constant(reserved.KEY)
_TOMBSTONE = reserved.constant(reserved.TOMBSTONE)
_HEX = reserved.constant(b"0123456789abcdef")
_RESERVED = reserved.constant(reserved.PREFIX)
ID_DIGITS = 32
_LATEST_ORIGIN = (1 << 63) - (1 << 33)


@helper
def _is(data: Any, entry: int, name: Any) -> Any:
    return same_bytes(data, entry + 5, load_half(data, entry + 1), name)


@helper
def _content(data: Any, entry: int) -> Any:
    """Return where the kind of an entry's value lies, in front of its size and its bytes."""
    return entry + 5 + load_half(data, entry + 1)


@helper
def _is_key(content: int, records: Any, row: int) -> Any:
    """Whether the entry whose value is here has become the record's key."""
    return records[KEY_SIZE, row] >= 0 and records[KEY_START, row] == content + 5


@helper
def _read_block(data: Any, records: Any, row: int) -> Any:
    """Find the key and the tombstone among a frame's user headers, and count the others."""
    position = records[BLOCK_START, row]
    end = records[BLOCK_END, row]
    count = 0
    while position < end:
        following = entry_end(data, position, end)
        if following < 0:
            return False
        if records[KEY_SIZE, row] < 0 and _is(data, position, _KEY):
            content = _content(data, position)
            records[KEY_START, row] = content + 5
            records[KEY_SIZE, row] = following - content - 5
        elif records[VALUE_SIZE, row] == 0 and _is(data, position, _TOMBSTONE):
            records[VALUE_SIZE, row] = -1
        else:
            count += 1
        position = following
    records[HEADER_COUNT, row] = count
    return True


@helper
def _body_count(data: Any, start: int, end: int) -> Any:
    """Return the number of frames that a body of sound layout declares, or -1."""
    if end - start < BATCH_HEADER_SIZE or load_word(data, start + LENGTH_AT) != end - start:
        return np.int64(-1)
    if load_word(data, start + ORIGIN_TIMESTAMP_AT) >= _LATEST_ORIGIN:
        return np.int64(-1)
    return load_half(data, start + COUNT_AT)


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE)
def read_iggy_records(data: Any, batches: Any, records: Any) -> Any:
    """Fill the records of every Iggy batch; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != IGGY or batches[RECORDS, batch] == 0:
            continue
        start = batches[BODY_START, batch]
        batch_end = batches[BODY_END, batch]
        count = _body_count(data, start, batch_end)
        if count != batches[RECORDS, batch]:
            return batch
        origin = np.int64(load_word(data, start + ORIGIN_TIMESTAMP_AT))
        position = start + BATCH_HEADER_SIZE
        last = np.int64(-1)
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + count):
            end = frame_end(data, position, batch_end)
            if end < 0:
                return batch
            delta = load_half(data, position + FRAME_OFFSET_AT)
            if delta <= last or delta > batches[LAST_DELTA, batch]:
                return batch
            last = delta
            records[OFFSET, row] = batches[BASE_OFFSET, batch] + delta
            records[TIMESTAMP, row] = origin + load_half(data, position + FRAME_TIMESTAMP_AT)
            records[KEY_START, row] = 0
            records[KEY_SIZE, row] = -1
            records[VALUE_START, row] = position + FRAME_SIZE
            records[VALUE_SIZE, row] = load_half(data, position + FRAME_PAYLOAD_AT)
            records[BLOCK_START, row] = end - load_half(data, position + FRAME_HEADERS_AT)
            records[BLOCK_END, row] = end
            if not _read_block(data, records, row):
                return batch
            position = end
        if position != batch_end:
            return batch
    return -1


@kernel(NOTHING, INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, TABLE)
def read_iggy_headers(
    data: Any, batches: Any, records: Any, header_start: Any, headers: Any
) -> None:
    """Fill the headers of every record of an Iggy batch; its blocks have been checked."""
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != IGGY:
            continue
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            position = records[BLOCK_START, row]
            end = records[BLOCK_END, row]
            header = header_start[row]
            untold = records[VALUE_SIZE, row] < 0
            while position < end:
                following = entry_end(data, position, end)
                content = _content(data, position)
                if untold and _is(data, position, _TOMBSTONE):
                    # Only the first one was not counted: another is a header like any other.
                    untold = False
                elif not _is_key(content, records, row):
                    headers[NAME_START, header] = position + 5
                    headers[NAME_SIZE, header] = content - position - 5
                    headers[CONTENT_START, header] = content + 5
                    headers[CONTENT_SIZE, header] = following - content - 5
                    headers[KINDS, header] = np.int64(data[position]) << 4 | data[content]
                    header += 1
                position = following


@helper
def _write_hex(out: Any, position: int, number: int) -> Any:
    """Write the 16 hexadecimal digits of a number; returns the position behind them."""
    for shift in range(60, -1, -4):
        out[position] = _HEX[(number >> np.uint64(shift)) & np.uint64(15)]
        position += 1
    return position


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS, NUMBERS, OUTPUT)
def write_ids(data: Any, batches: Any, records: Any, starts: Any, sizes: Any, out: Any) -> Any:
    """Write the id of every message of an Iggy batch that has one, as 32 hexadecimal digits.

    Other messages have the size -1. Returns the position behind the last id.
    """
    position = np.int64(0)
    starts[:] = 0
    sizes[:] = -1
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != IGGY:
            continue
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            start = records[VALUE_START, row] - FRAME_SIZE + FRAME_ID_AT
            low = load_word(data, start)
            high = load_word(data, start + 8)
            if low | high:
                starts[row] = position
                sizes[row] = ID_DIGITS
                position = _write_hex(out, _write_hex(out, position, high), low)
    return position


@helper
def _is_reserved(data: Any, headers: Any, header: Any) -> Any:
    start = headers[NAME_START, header]
    longer = headers[NAME_SIZE, header] > len(_RESERVED)
    return longer and same_bytes(data, start, len(_RESERVED), _RESERVED)


@helper
def _is_understood(data: Any, headers: Any, header: Any, text: Any) -> Any:
    """Whether these kinds are what is assumed where none are told."""
    kinds = headers[KINDS, header]
    if kinds == KINDS_UNTOLD:
        return True
    start = headers[CONTENT_START, header]
    if text and is_text(data, start, headers[CONTENT_SIZE, header]):
        return kinds == KINDS_OF_TEXT
    return kinds == KINDS_OF_BYTES


@kernel(
    INTEGER, INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, INTEGER, NUMBERS, NUMBERS, OUTPUT
)  # fmt: skip
def write_kinds(
    data: Any, batches: Any, headers: Any, header_start: Any, text: int, starts: Any, sizes: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Write the kinds of each Iggy message's own headers, two hexadecimal digits a header.

    A size is -1 where all kinds are what is understood without: named by a string, and with bytes
    as the value, or if `text` is not 0, with a string where the value is one. Returns the position
    behind the last kinds that are not understood.
    """
    position = np.int64(0)
    starts[:] = 0
    sizes[:] = -1
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != IGGY:
            continue
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            end = position
            understood = True
            for header in range(header_start[row], header_start[row + 1]):
                if _is_reserved(data, headers, header):
                    continue
                understood = understood and _is_understood(data, headers, header, text)
                kinds = headers[KINDS, header]
                if kinds == KINDS_UNTOLD:
                    kinds = np.int64(KINDS_OF_BYTES)
                out[end] = _HEX[kinds >> 4]
                out[end + 1] = _HEX[kinds & 15]
                end += 2
            if not understood:
                starts[row] = position
                sizes[row] = end - position
                position = end
    return position
