"""Pulsar's entries, read into columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.records.columns import (
    BASE_OFFSET,
    BLOCK_END,
    BLOCK_START,
    BODY_END,
    BODY_START,
    CONTENT_SIZE,
    CONTENT_START,
    COUNT,
    FIRST_RECORD,
    HEADER_COUNT,
    KEY_SIZE,
    KEY_START,
    KINDS,
    KINDS_OF_TEXT,
    MAGIC,
    NAME_SIZE,
    NAME_START,
    OFFSET,
    RECORDS,
    TIMESTAMP,
    VALUE_SIZE,
    VALUE_START,
)
from penstock.records.kafka.decode import microseconds
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    NUMBERS_INPUT,
    TABLE,
    TABLE_INPUT,
    helper,
    kernel,
)
from penstock.records.kernels.primitives import MALFORMED, load_big
from penstock.records.kernels.protobuf_fields import (
    CHUNKS,
    COMPACTED_OUT,
    COMPRESSION,
    ENCRYPTION_KEYS,
    EVENT_TIME,
    KEY_IS_BASE64,
    MARKER,
    MESSAGE_METADATA,
    MESSAGES,
    NULL_KEY,
    NULL_VALUE,
    ORDERING_KEY,
    OTHER,
    PARTITION_KEY,
    PAYLOAD_SIZE,
    PRODUCER,
    PROPERTIES,
    PROPERTY_NUMBER_OF_MESSAGE,
    PROPERTY_NUMBER_OF_SINGLE,
    PUBLISH_TIME,
    SEQUENCE,
    SINGLE_METADATA,
    UNCOMPRESSED_SIZE,
    WIRE_BYTES,
    next_field,
    read_fields,
)
from penstock.records.scan import PULSAR

_CHECKSUM_MAGIC = 0x0E01
_CHECKSUM_SIZE = 6

# Fields of an entry.
METADATA_START: Final = 0
METADATA_END: Final = 1
PAYLOAD_START: Final = 2
PAYLOAD_END: Final = 3
CODEC: Final = 4
INFLATED_SIZE: Final = 5
IS_BATCH: Final = 6
IS_ENCRYPTED: Final = 7
CHUNK_COUNT: Final = 8
PUBLISHED: Final = 9
PRODUCER_START: Final = 10
PRODUCER_SIZE: Final = 11
OTHER_FIELDS: Final = 12
ENTRY_FIELDS: Final = 13

# Fields of a message, beside those of every record.
ENTRY: Final = 0
HAS_EVENT_TIME: Final = 1
SEQUENCE_ID: Final = 2
ORDERING_START: Final = 3
ORDERING_SIZE: Final = 4
IN_BASE64: Final = 5
KEY_IS_NULL: Final = 6
MESSAGE_FIELDS: Final = 7

SMALLEST_MESSAGE = 6
"""Bytes of the smallest message in a batch: its metadata's size, and a payload size."""
DROPPED: Final = -1
"""The offset of a message that compaction has emptied."""


@helper
def _read_entry(data: Any, start: int, end: int, fields: Any, entries: Any, batch: int) -> Any:
    """Find metadata and payload of one entry and read the metadata."""
    if end - start >= _CHECKSUM_SIZE and load_big(data, start, 2) == _CHECKSUM_MAGIC:
        start += _CHECKSUM_SIZE
    if end - start < 4:
        return False
    size = load_big(data, start, 4)
    start += 4
    if size > end - start or not read_fields(data, start, start + size, MESSAGE_METADATA, fields):
        return False
    if fields[PRODUCER, 1] < 0 or fields[SEQUENCE, 1] < 0 or fields[PUBLISH_TIME, 1] < 0:
        return False
    entries[METADATA_START, batch] = start
    entries[METADATA_END, batch] = start + size
    entries[PAYLOAD_START, batch] = start + size
    entries[PAYLOAD_END, batch] = end
    return True


@kernel(INTEGER, INPUT, TABLE, TABLE, TABLE)
def read_entries(data: Any, batches: Any, entries: Any, fields: Any) -> Any:
    """Fill the entry of every Pulsar batch; returns the index of a malformed batch, or -1.

    The number of its records becomes 0 for a marker and for a chunk of a larger message, and 1
    for what is encrypted and can't be looked into. `fields` has room for those of one message.
    """
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != PULSAR or batches[COUNT, batch] == 0:
            continue
        start = batches[BODY_START, batch]
        if not _read_entry(data, start, batches[BODY_END, batch], fields, entries, batch):
            return batch
        entries[CODEC, batch] = fields[COMPRESSION, 0]
        entries[INFLATED_SIZE, batch] = fields[UNCOMPRESSED_SIZE, 0] & 0xFFFFFFFF
        entries[IS_BATCH, batch] = fields[MESSAGES, 1] >= 0
        entries[IS_ENCRYPTED, batch] = fields[ENCRYPTION_KEYS, 1] >= 0
        entries[CHUNK_COUNT, batch] = fields[CHUNKS, 0]
        entries[PUBLISHED, batch] = fields[PUBLISH_TIME, 0]
        entries[PRODUCER_START, batch] = fields[PRODUCER, 0]
        entries[PRODUCER_SIZE, batch] = fields[PRODUCER, 1]
        entries[OTHER_FIELDS, batch] = fields[OTHER, 0]
        messages = fields[MESSAGES, 0] if fields[MESSAGES, 1] >= 0 else np.int64(1)
        if messages != batches[COUNT, batch]:
            return batch
        if fields[MARKER, 1] >= 0 or fields[CHUNKS, 0] > 1:
            batches[RECORDS, batch] = 0
        elif entries[IS_ENCRYPTED, batch]:
            entries[CODEC, batch] = 0
            entries[IS_BATCH, batch] = 0
            batches[RECORDS, batch] = 1
    return -1


@helper
def _fill(fields: Any, published: int, records: Any, messages: Any, row: int) -> None:
    """Write what both kinds of metadata say about a message."""
    event_time = fields[EVENT_TIME, 0]
    messages[HAS_EVENT_TIME, row] = event_time != 0
    messages[SEQUENCE_ID, row] = fields[SEQUENCE, 0] if fields[SEQUENCE, 1] >= 0 else np.int64(-1)
    messages[ORDERING_START, row] = fields[ORDERING_KEY, 0]
    messages[ORDERING_SIZE, row] = fields[ORDERING_KEY, 1]
    messages[IN_BASE64, row] = fields[KEY_IS_BASE64, 0] != 0 and fields[PARTITION_KEY, 1] >= 0
    messages[KEY_IS_NULL, row] = fields[NULL_KEY, 0] != 0
    records[TIMESTAMP, row] = microseconds(event_time if event_time != 0 else published)
    records[KEY_START, row] = fields[PARTITION_KEY, 0]
    is_null = fields[NULL_KEY, 0] != 0
    records[KEY_SIZE, row] = np.int64(-1) if is_null else fields[PARTITION_KEY, 1]
    records[HEADER_COUNT, row] = fields[PROPERTIES, 0]
    if fields[NULL_VALUE, 0] != 0:
        records[VALUE_SIZE, row] = -1


@helper
def _read_batched(
    data: Any, position: int, end: int, published: int, fields: Any, records: Any, messages: Any,
    row: int,
) -> Any:  # fmt: skip
    """Read one message of a batch; returns the position behind it, or MALFORMED."""
    if end - position < 4:
        return np.int64(MALFORMED)
    size = load_big(data, position, 4)
    position += 4
    if size > end - position:
        return np.int64(MALFORMED)
    if not read_fields(data, position, position + size, SINGLE_METADATA, fields):
        return np.int64(MALFORMED)
    records[BLOCK_START, row] = position
    records[BLOCK_END, row] = position + size
    position += size
    payload = fields[PAYLOAD_SIZE, 0]
    if fields[PAYLOAD_SIZE, 1] < 0 or payload < 0 or payload > end - position:
        return np.int64(MALFORMED)
    records[VALUE_START, row] = position
    records[VALUE_SIZE, row] = payload
    _fill(fields, published, records, messages, row)
    if fields[COMPACTED_OUT, 0] != 0:
        records[OFFSET, row] = DROPPED
    return position + payload


@helper
def _read_single(
    data: Any, entries: Any, batch: int, fields: Any, records: Any, messages: Any, row: int
) -> None:
    """Read the message of an entry that is no batch; its metadata has been checked."""
    start = entries[METADATA_START, batch]
    end = entries[METADATA_END, batch]
    read_fields(data, start, end, MESSAGE_METADATA, fields)
    records[BLOCK_START, row] = start
    records[BLOCK_END, row] = end
    records[VALUE_START, row] = entries[PAYLOAD_START, batch]
    records[VALUE_SIZE, row] = entries[PAYLOAD_END, batch] - entries[PAYLOAD_START, batch]
    _fill(fields, entries[PUBLISHED, batch], records, messages, row)


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE_INPUT, TABLE, TABLE, TABLE)
def read_pulsar_records(
    data: Any, batches: Any, entries: Any, records: Any, messages: Any, fields: Any
) -> Any:
    """Fill the records of every Pulsar entry; returns the index of a malformed batch, or -1.

    `fields` has room for those of one message.
    """
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != PULSAR or batches[RECORDS, batch] == 0:
            continue
        first = batches[FIRST_RECORD, batch]
        for index in range(batches[RECORDS, batch]):
            messages[ENTRY, first + index] = batch
            records[OFFSET, first + index] = batches[BASE_OFFSET, batch] + index
        if entries[IS_BATCH, batch] == 0:
            _read_single(data, entries, batch, fields, records, messages, first)
            continue
        position = entries[PAYLOAD_START, batch]
        end = entries[PAYLOAD_END, batch]
        published = entries[PUBLISHED, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            position = _read_batched(data, position, end, published, fields, records, messages, row)
            if position == MALFORMED:
                return batch
        if position != end:
            return batch
    return -1


@helper
def _read_property(data: Any, position: int, end: int, headers: Any, header: int) -> Any:
    """Read a KeyValue, both of whose fields are required."""
    headers[NAME_SIZE, header] = -1
    headers[CONTENT_SIZE, header] = -1
    while position < end:
        number, wire_type, value, size, position = next_field(data, position, end)
        if position == MALFORMED or wire_type != WIRE_BYTES:
            return False
        if number == 1:
            headers[NAME_START, header] = value
            headers[NAME_SIZE, header] = size
        elif number == 2:
            headers[CONTENT_START, header] = value
            headers[CONTENT_SIZE, header] = size
    headers[KINDS, header] = KINDS_OF_TEXT
    return headers[NAME_SIZE, header] >= 0 and headers[CONTENT_SIZE, header] >= 0


@kernel(INTEGER, INPUT, TABLE_INPUT, TABLE_INPUT, TABLE_INPUT, NUMBERS_INPUT, TABLE)
def read_pulsar_headers(
    data: Any, batches: Any, entries: Any, records: Any, header_start: Any, headers: Any
) -> Any:
    """Fill the properties of every message; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[MAGIC, batch] != PULSAR:
            continue
        wanted = PROPERTY_NUMBER_OF_MESSAGE
        if entries[IS_BATCH, batch]:
            wanted = PROPERTY_NUMBER_OF_SINGLE
        first = batches[FIRST_RECORD, batch]
        for row in range(first, first + batches[RECORDS, batch]):
            header = header_start[row]
            position = records[BLOCK_START, row]
            end = records[BLOCK_END, row]
            while position < end and header < header_start[row + 1]:
                number, _, start, size, position = next_field(data, position, end)
                if number != wanted:
                    continue
                if not _read_property(data, start, start + size, headers, header):
                    return batch
                header += 1
    return -1
