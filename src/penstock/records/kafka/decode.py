"""Kafka's records of magic 2 (KIP-98), read into columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.log.header import ATTRIBUTE_LOG_APPEND_TIME
from penstock.records.columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
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
    LAST_DELTA,
    MAGIC,
    MAX_TIMESTAMP,
    NAME_SIZE,
    NAME_START,
    OFFSET,
    RECORDS,
    TIMESTAMP,
    VALUE_SIZE,
    VALUE_START,
)
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NUMBERS_INPUT,
    TABLE,
    TABLE_INPUT,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import MALFORMED, read_zigzag
from penstock.records.scan import KAFKA

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers, its length included."""
_SMALLEST_HEADER = 2
_LATEST_MILLISECOND = ((1 << 63) - (1 << 34)) // 1000
"""It leaves room for what Iggy adds to a batch's earliest time."""


@helper
def microseconds(milliseconds: int) -> Any:
    """Return Kafka's time in microseconds; -1, which says 'none', stays."""
    if milliseconds == -1:
        return np.int64(-1)
    return max(min(milliseconds, _LATEST_MILLISECOND), -_LATEST_MILLISECOND) * 1000


@helper
def _read_span(data: Any, position: int, end: int) -> Any:
    """Read a nullable byte string; returns its start, its size and the position behind it."""
    size, position = read_zigzag(data, position, end)
    if position == MALFORMED or size < -1 or size > end - position:
        return np.int64(0), np.int64(0), np.int64(MALFORMED)
    return position, size, position + max(size, 0)


@helper
def _read_record(data: Any, position: int, end: int, records: Any, row: int) -> Any:
    """Read one record's fields as deltas; returns the position behind it, or MALFORMED."""
    size, position = read_zigzag(data, position, end)
    if position == MALFORMED or size < SMALLEST_RECORD - 1 or size > end - position:
        return np.int64(MALFORMED)
    end = position + size
    # The attributes byte, which is unused, is skipped.
    records[TIMESTAMP, row], position = read_zigzag(data, position + 1, end)
    records[OFFSET, row], position = read_zigzag(data, position, end)
    records[KEY_START, row], records[KEY_SIZE, row], position = _read_span(data, position, end)
    records[VALUE_START, row], records[VALUE_SIZE, row], position = _read_span(data, position, end)
    headers, position = read_zigzag(data, position, end)
    if position == MALFORMED or headers < 0 or headers > (end - position) // _SMALLEST_HEADER:
        return np.int64(MALFORMED)
    if headers == 0 and position != end:
        return np.int64(MALFORMED)
    records[HEADER_COUNT, row] = headers
    records[BLOCK_START, row] = position
    records[BLOCK_END, row] = end
    return end


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE)
def read_kafka_records(data: Any, batches: Any, records: Any) -> Any:
    """Fill the records of every Kafka batch; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != KAFKA or batches[RECORDS, batch] == 0:
            continue
        position = batches[BODY_START, batch]
        end = batches[BODY_END, batch]
        first = batches[FIRST_RECORD, batch]
        appended = batches[ATTRIBUTES, batch] & ATTRIBUTE_LOG_APPEND_TIME
        last = np.int64(-1)
        for row in range(first, first + batches[RECORDS, batch]):
            position = _read_record(data, position, end, records, row)
            if position == MALFORMED:
                return batch
            delta = records[OFFSET, row]
            if delta <= last or delta > batches[LAST_DELTA, batch]:
                return batch
            last = delta
            records[OFFSET, row] = batches[BASE_OFFSET, batch] + delta
            if appended:
                time = batches[MAX_TIMESTAMP, batch]
            else:
                time = batches[BASE_TIMESTAMP, batch] + records[TIMESTAMP, row]
            records[TIMESTAMP, row] = microseconds(time)
        if position != end:
            return batch
    return -1


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, TABLE)
def read_kafka_headers(
    data: Any, batches: Any, records: Any, header_start: Any, headers: Any
) -> Any:
    """Fill the headers of every Kafka record; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != KAFKA:
            continue
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            position = records[BLOCK_START, row]
            end = records[BLOCK_END, row]
            for header in range(header_start[row], header_start[row + 1]):
                start, size, position = _read_span(data, position, end)
                if position == MALFORMED or size < 0:
                    return batch
                headers[NAME_START, header] = start
                headers[NAME_SIZE, header] = size
                start, size, position = _read_span(data, position, end)
                if position == MALFORMED:
                    return batch
                headers[CONTENT_START, header] = start
                headers[CONTENT_SIZE, header] = size
                headers[KINDS, header] = KINDS_OF_BYTES
            if position != end:
                return batch
    return -1
