"""The headers of a run of stored batches, read at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    HEADER_SIZE,
    PREFIX_SIZE,
    Magic,
)
from penstock.records.columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BATCH_FIELDS,
    BODY_END,
    BODY_START,
    COUNT,
    FIRST_RECORD,
    LAST_DELTA,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    RECORDS,
    Bytes,
    Numbers,
)
from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.jit import INPUT, INTEGER, TABLE, kernel
from penstock.records.kernels.primitives import load_big

_LENGTH_AT = 8
_MAGIC_AT = 16
_ATTRIBUTES_AT = 21
_LAST_DELTA_AT = 23
_BASE_TIMESTAMP_AT = 27
_MAX_TIMESTAMP_AT = 35
_COUNT_AT = 57
_SIGNED_32 = 1 << 31

KAFKA = int(Magic.KAFKA)
IGGY = int(Magic.IGGY)
PULSAR = int(Magic.PULSAR)
_CONTROL = ATTRIBUTE_CONTROL


def scan(data: Bytes) -> Numbers:
    """Return the table of the whole batches that `data` consists of.

    Raises MalformedBatchError where it does not consist of whole batches of known encodings, or
    where a header's numbers can't be.
    """
    count = count_batches(data)
    if count < 0:
        raise MalformedBatchError("these bytes are not a run of whole batches")
    batches = np.zeros((BATCH_FIELDS, count), np.int64)
    bad = read_headers(data, batches)
    if bad >= 0:
        raise malformed(batches, bad, "a header's numbers contradict each other")
    batches[FIRST_RECORD, 1:] = np.cumsum(batches[RECORDS])[:-1]
    return batches


def malformed(batches: Numbers, batch: int, reason: str) -> MalformedBatchError:
    """Return the error that names where this batch lies in the log."""
    base_offset = int(batches[BASE_OFFSET, batch])
    last_delta = int(batches[LAST_DELTA, batch])
    return MalformedBatchError(reason, base_offset, base_offset + last_delta + 1)


@kernel(INTEGER, INPUT)
def count_batches(data: Any) -> Any:
    """Return how many batches these bytes are, or -1 when they are not whole batches."""
    position = 0
    count = 0
    while position + HEADER_SIZE <= len(data):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        if size < HEADER_SIZE or size > len(data) - position:
            return -1
        position += size
        count += 1
    return count if position == len(data) else -1


@kernel(INTEGER, INPUT, TABLE)
def read_headers(data: Any, batches: Any) -> Any:
    """Fill the table; returns the index of the first impossible header, or -1."""
    position = 0
    for batch in range(batches.shape[1]):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        magic = np.int64(data[position + _MAGIC_AT])
        count = load_big(data, position + _COUNT_AT, 4)
        last_delta = load_big(data, position + _LAST_DELTA_AT, 4)
        attributes = load_big(data, position + _ATTRIBUTES_AT, 2)
        batches[POSITION, batch] = position
        batches[MAGIC, batch] = magic
        batches[BASE_OFFSET, batch] = load_big(data, position, 8)
        batches[LAST_DELTA, batch] = last_delta
        batches[ATTRIBUTES, batch] = attributes
        batches[BASE_TIMESTAMP, batch] = load_big(data, position + _BASE_TIMESTAMP_AT, 8)
        batches[MAX_TIMESTAMP, batch] = load_big(data, position + _MAX_TIMESTAMP_AT, 8)
        batches[COUNT, batch] = count
        batches[BODY_START, batch] = position + HEADER_SIZE
        batches[BODY_END, batch] = position + size
        batches[RECORDS, batch] = 0 if attributes & _CONTROL else count
        if magic not in (KAFKA, IGGY, PULSAR) or last_delta >= _SIGNED_32:
            return batch
        if count > last_delta + 1 or batches[BASE_OFFSET, batch] < 0:
            return batch
        position += size
    return -1
