"""The headers of a run of stored batches, read at once."""

from __future__ import annotations

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    HEADER_SIZE,
    PREFIX_SIZE,
    Magic,
)
from penstock.records import field
from penstock.records.columns import Bytes, Numbers
from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.arguments import BytesIn, TableOut, int64
from penstock.records.kernels.jit import kernel
from penstock.records.kernels.primitives import load_big

_LENGTH_AT = 8
_MAGIC_AT = 16
_ATTRIBUTES_AT = 21
_LAST_DELTA_AT = 23
_BASE_TIMESTAMP_AT = 27
_MAX_TIMESTAMP_AT = 35
_COUNT_AT = 57
_SIGNED_32 = 1 << 31


def scan(data: Bytes) -> Numbers:
    """Return the table of the whole batches that `data` consists of.

    Raises MalformedBatchError where it does not consist of whole batches of known encodings, or
    where a header's numbers can't be.
    """
    count = count_batches(data)
    if count < 0:
        raise MalformedBatchError("these bytes are not a run of whole batches")
    batches = np.zeros((field.BATCH_FIELDS, count), np.int64)
    bad = read_headers(data, batches)
    if bad >= 0:
        raise malformed(batches, bad, "a header's numbers contradict each other")
    batches[field.FIRST_RECORD, 1:] = np.cumsum(batches[field.RECORDS])[:-1]
    return batches


def malformed(batches: Numbers, batch: int, reason: str) -> MalformedBatchError:
    """Return the error that names where this batch lies in the log."""
    base_offset = int(batches[field.BASE_OFFSET, batch])
    last_delta = int(batches[field.LAST_DELTA, batch])
    return MalformedBatchError(reason, base_offset, base_offset + last_delta + 1)


@kernel
def count_batches(data: BytesIn) -> int:
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


@kernel
def read_headers(data: BytesIn, batches: TableOut) -> int:
    """Fill the table; returns the index of the first impossible header, or -1."""
    position = 0
    for batch in range(batches.shape[1]):
        size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
        magic = int64(data[position + _MAGIC_AT])
        count = load_big(data, position + _COUNT_AT, 4)
        last_delta = load_big(data, position + _LAST_DELTA_AT, 4)
        attributes = load_big(data, position + _ATTRIBUTES_AT, 2)
        batches[field.POSITION, batch] = position
        batches[field.MAGIC, batch] = magic
        batches[field.BASE_OFFSET, batch] = load_big(data, position, 8)
        batches[field.LAST_DELTA, batch] = last_delta
        batches[field.ATTRIBUTES, batch] = attributes
        batches[field.BASE_TIMESTAMP, batch] = load_big(data, position + _BASE_TIMESTAMP_AT, 8)
        batches[field.MAX_TIMESTAMP, batch] = load_big(data, position + _MAX_TIMESTAMP_AT, 8)
        batches[field.COUNT, batch] = count
        batches[field.BODY_START, batch] = position + HEADER_SIZE
        batches[field.BODY_END, batch] = position + size
        batches[field.RECORDS, batch] = 0 if attributes & ATTRIBUTE_CONTROL else count
        if magic not in (Magic.KAFKA, Magic.IGGY, Magic.PULSAR) or last_delta >= _SIGNED_32:
            return batch
        if count > last_delta + 1 or batches[field.BASE_OFFSET, batch] < 0:
            return batch
        position += size
    return -1
