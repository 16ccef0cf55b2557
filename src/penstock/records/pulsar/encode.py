"""Columns, written as Pulsar's entries: each batch becomes a batch of messages."""

from __future__ import annotations

from typing import Final

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.arena import header_arena
from penstock.records.batch_headers import Encoded, write_batch_headers
from penstock.records.columns import Bytes, Columns, Numbers
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, store_big, varint_size, write_varint
from penstock.records.kernels.protobuf import WIRE_BYTES, write_number
from penstock.records.kernels.text import base64_size, mark_text, write_base64
from penstock.records.pulsar.entry import CHECKSUM_AT, CHECKSUM_MAGIC, CHECKSUM_SIZE
from penstock.records.pulsar.headers import PulsarFacts
from penstock.records.pulsar.metadata_pb2 import MessageMetadata, SingleMessageMetadata

# Fields of a message, beside those of the record.
EVENT_TIME: Final = 0
SEQUENCE_ID: Final = 1
ORDERING_START: Final = 2
ORDERING_SIZE: Final = 3
KEY_IS_TEXT: Final = 4
KEY_IS_NULL: Final = 5
METADATA_SIZE: Final = 6
MESSAGE_FIELDS: Final = 7

# Fields of an entry.
PUBLISH_TIME: Final = 0
SEQUENCE: Final = 1
PRODUCER_START: Final = 2
PRODUCER_SIZE: Final = 3
REST_START: Final = 4
REST_SIZE: Final = 5
ENTRY_METADATA_SIZE: Final = 6
ENTRY_FIELDS: Final = 7

# Numbers of a message's metadata fields.
_PROPERTIES: Final = SingleMessageMetadata.PROPERTIES_FIELD_NUMBER
_PARTITION_KEY: Final = SingleMessageMetadata.PARTITION_KEY_FIELD_NUMBER
_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER
_EVENT_TIME: Final = SingleMessageMetadata.EVENT_TIME_FIELD_NUMBER
_KEY_IS_BASE64: Final = SingleMessageMetadata.PARTITION_KEY_B64_ENCODED_FIELD_NUMBER
_ORDERING_KEY: Final = SingleMessageMetadata.ORDERING_KEY_FIELD_NUMBER
_SEQUENCE_ID: Final = SingleMessageMetadata.SEQUENCE_ID_FIELD_NUMBER
_NULL_VALUE: Final = SingleMessageMetadata.NULL_VALUE_FIELD_NUMBER
_NULL_PARTITION_KEY: Final = SingleMessageMetadata.NULL_PARTITION_KEY_FIELD_NUMBER

# Numbers of an entry's metadata fields.
_OF_PRODUCER: Final = MessageMetadata.PRODUCER_NAME_FIELD_NUMBER
_OF_SEQUENCE: Final = MessageMetadata.SEQUENCE_ID_FIELD_NUMBER
_OF_PUBLISH_TIME: Final = MessageMetadata.PUBLISH_TIME_FIELD_NUMBER
_OF_PARTITION_KEY: Final = MessageMetadata.PARTITION_KEY_FIELD_NUMBER
_OF_MESSAGES: Final = MessageMetadata.NUM_MESSAGES_IN_BATCH_FIELD_NUMBER
_OF_KEY_IS_BASE64: Final = MessageMetadata.PARTITION_KEY_B64_ENCODED_FIELD_NUMBER
_OF_ORDERING_KEY: Final = MessageMetadata.ORDERING_KEY_FIELD_NUMBER


def encode_pulsar(columns: Columns, facts: PulsarFacts) -> memoryview:
    """Return the same batches with Pulsar bodies, uncompressed, one behind the other.

    The offsets of a batch have no gaps by now, names and values of headers are distinct UTF-8, and
    no time is negative.
    """
    batches = columns.batches
    header_data, messages, entries = _describe(columns, facts)
    tables = (columns.records, columns.headers, columns.header_start)
    bodies = np.empty(batches.shape[1], np.int64)
    measure_pulsar(batches, *tables, messages, entries, bodies)
    encoded = Encoded.allocate(batches, bodies)
    data = (columns.data, header_data)
    write_pulsar(*data, batches, *tables, messages, entries, encoded.body_starts, encoded.out)
    _write_checksums(encoded, batches)
    return write_batch_headers(encoded, Magic.PULSAR, batches)


def _describe(columns: Columns, facts: PulsarFacts) -> tuple[Bytes, Numbers, Numbers]:
    """Return the tables of what messages and entries say beside their records.

    In front of them is the buffer of the headers, into which both point too.
    """
    messages = np.empty((MESSAGE_FIELDS, len(columns)), np.int64)
    messages[EVENT_TIME] = facts.event_times
    messages[SEQUENCE_ID] = facts.sequences
    messages[ORDERING_START] = facts.ordering_starts
    messages[ORDERING_SIZE] = facts.ordering_sizes
    messages[KEY_IS_NULL] = facts.null_keys
    text = np.empty(len(columns), np.bool_)
    mark_text(columns.data, columns.records[field.KEY_START], columns.records[field.KEY_SIZE], text)
    messages[KEY_IS_TEXT] = text
    entries = np.empty((ENTRY_FIELDS, columns.batches.shape[1]), np.int64)
    entries[PUBLISH_TIME] = facts.publish_times
    entries[SEQUENCE] = columns.batches[field.BASE_OFFSET]
    firsts = columns.batches[field.FIRST_RECORD][columns.batches[field.RECORDS] > 0]
    filled = columns.batches[field.RECORDS] > 0
    entries[SEQUENCE, filled] = np.where(
        facts.sequences[firsts] >= 0, facts.sequences[firsts], entries[SEQUENCE, filled]
    )
    arena = header_arena(columns)
    for batch, (producer, metadata) in enumerate(zip(facts.producers, facts.metadata, strict=True)):
        entries[[PRODUCER_START, PRODUCER_SIZE], batch] = arena.add_bytes(producer), len(producer)
        entries[[REST_START, REST_SIZE], batch] = arena.add_bytes(metadata), len(metadata)
    return arena.join(), messages, entries


def _write_checksums(encoded: Encoded, batches: Numbers) -> None:
    view = encoded.out.data
    for batch in np.flatnonzero(batches[field.RECORDS]).tolist():
        start = int(encoded.body_starts[batch])
        summed = view[start + CHECKSUM_SIZE : start + int(encoded.bodies[batch])]
        view[start + CHECKSUM_AT : start + CHECKSUM_SIZE] = crc32c(summed).to_bytes(4, "big")


@helper
def _bytes_size(number: int, size: int) -> int:
    """Return the size of a field of bytes: its tag, its length and itself."""
    return varint_size(number << 3) + varint_size(size) + size


@helper
def _number_size(number: int, value: int) -> int:
    return varint_size(number << 3) + varint_size(value)


@helper
def _write_tag_and_size(out: BytesOut, position: int, number: int, size: int) -> int:
    position = write_varint(out, position, number << 3 | WIRE_BYTES)
    return write_varint(out, position, size)


@helper
def _write_bytes(
    out: BytesOut, position: int, number: int, data: BytesIn, start: int, size: int
) -> int:
    position = _write_tag_and_size(out, position, number, size)
    copy_bytes(out, position, data, start, size)
    return position + size


@helper
def _key_size(records: TableIn, messages: TableIn, row: int, key: int, flag: int) -> int:
    """Return the size of a key's field, and of the flag that says how it is written."""
    size = records[field.KEY_SIZE, row]
    if size < 0:
        return 0
    if messages[KEY_IS_TEXT, row]:
        return _bytes_size(key, size)
    return _bytes_size(key, base64_size(size)) + _number_size(flag, 1)


@helper
def _write_key(
    out: BytesOut,
    position: int,
    data: BytesIn,
    records: TableIn,
    messages: TableIn,
    row: int,
    key: int,
    flag: int,
) -> int:
    size = records[field.KEY_SIZE, row]
    start = records[field.KEY_START, row]
    if size < 0:
        return position
    if messages[KEY_IS_TEXT, row]:
        return _write_bytes(out, position, key, data, start, size)
    position = _write_tag_and_size(out, position, key, base64_size(size))
    position = write_base64(out, position, data, start, size)
    return write_number(out, position, flag, 1)


@helper
def _property_size(headers: TableIn, header: int) -> int:
    """Return the size of a KeyValue."""
    name = headers[field.NAME_SIZE, header]
    return _bytes_size(1, name) + _bytes_size(2, headers[field.CONTENT_SIZE, header])


@helper
def _metadata_size(
    records: TableIn, headers: TableIn, header_start: NumbersIn, messages: TableIn, row: int
) -> int:
    size = _number_size(_PAYLOAD_SIZE, max(records[field.VALUE_SIZE, row], 0))
    size += _key_size(records, messages, row, _PARTITION_KEY, _KEY_IS_BASE64)
    for header in range(header_start[row], header_start[row + 1]):
        size += _bytes_size(_PROPERTIES, _property_size(headers, header))
    if messages[EVENT_TIME, row] > 0:
        size += _number_size(_EVENT_TIME, messages[EVENT_TIME, row])
    if messages[ORDERING_SIZE, row] >= 0:
        size += _bytes_size(_ORDERING_KEY, messages[ORDERING_SIZE, row])
    if messages[SEQUENCE_ID, row] >= 0:
        size += _number_size(_SEQUENCE_ID, messages[SEQUENCE_ID, row])
    if records[field.VALUE_SIZE, row] < 0:
        size += _number_size(_NULL_VALUE, 1)
    if messages[KEY_IS_NULL, row]:
        size += _number_size(_NULL_PARTITION_KEY, 1)
    return size


@helper
def _entry_metadata_size(
    records: TableIn, messages: TableIn, entries: TableIn, batch: int, row: int, count: int
) -> int:
    size = _bytes_size(_OF_PRODUCER, entries[PRODUCER_SIZE, batch])
    size += _number_size(_OF_SEQUENCE, entries[SEQUENCE, batch])
    size += _number_size(_OF_PUBLISH_TIME, entries[PUBLISH_TIME, batch])
    size += _key_size(records, messages, row, _OF_PARTITION_KEY, _OF_KEY_IS_BASE64)
    size += _number_size(_OF_MESSAGES, count)
    if messages[ORDERING_SIZE, row] >= 0:
        size += _bytes_size(_OF_ORDERING_KEY, messages[ORDERING_SIZE, row])
    return size + entries[REST_SIZE, batch]


@kernel
def measure_pulsar(
    batches: TableIn, records: TableIn, headers: TableIn, header_start: NumbersIn,
    messages: TableOut, entries: TableOut, bodies: NumbersOut,
) -> None:  # fmt: skip
    """Fill in the sizes of each message's and each entry's metadata, and of every body."""
    for batch in range(batches.shape[1]):
        count = batches[field.RECORDS, batch]
        if count == 0:
            bodies[batch] = 0
            continue
        first = batches[field.FIRST_RECORD, batch]
        total = int64(0)
        for row in range(first, first + count):
            size = _metadata_size(records, headers, header_start, messages, row)
            messages[METADATA_SIZE, row] = size
            total += 4 + size + max(records[field.VALUE_SIZE, row], 0)
        size = _entry_metadata_size(records, messages, entries, batch, first, count)
        entries[ENTRY_METADATA_SIZE, batch] = size
        bodies[batch] = CHECKSUM_SIZE + 4 + size + total


@helper
def _write_properties(
    out: BytesOut, position: int, data: BytesIn, headers: TableIn, first: int, last: int
) -> int:
    for header in range(first, last):
        size = _property_size(headers, header)
        position = _write_tag_and_size(out, position, _PROPERTIES, size)
        start = headers[field.NAME_START, header]
        position = _write_bytes(out, position, 1, data, start, headers[field.NAME_SIZE, header])
        start = headers[field.CONTENT_START, header]
        position = _write_bytes(out, position, 2, data, start, headers[field.CONTENT_SIZE, header])
    return position


@helper
def _write_message(
    out: BytesOut, position: int, data: BytesIn, header_data: BytesIn, records: TableIn,
    headers: TableIn, header_start: NumbersIn, messages: TableIn, row: int,
) -> int:  # fmt: skip
    position = store_big(out, position, 4, messages[METADATA_SIZE, row])
    first = header_start[row]
    last = header_start[row + 1]
    position = _write_properties(out, position, header_data, headers, first, last)
    position = _write_key(
        out, position, data, records, messages, row, _PARTITION_KEY, _KEY_IS_BASE64
    )
    size = max(records[field.VALUE_SIZE, row], 0)
    position = write_number(out, position, _PAYLOAD_SIZE, size)
    if messages[EVENT_TIME, row] > 0:
        position = write_number(out, position, _EVENT_TIME, messages[EVENT_TIME, row])
    if messages[ORDERING_SIZE, row] >= 0:
        ordering = messages[ORDERING_START, row]
        length = messages[ORDERING_SIZE, row]
        position = _write_bytes(out, position, _ORDERING_KEY, header_data, ordering, length)
    if messages[SEQUENCE_ID, row] >= 0:
        position = write_number(out, position, _SEQUENCE_ID, messages[SEQUENCE_ID, row])
    if records[field.VALUE_SIZE, row] < 0:
        position = write_number(out, position, _NULL_VALUE, 1)
    if messages[KEY_IS_NULL, row]:
        position = write_number(out, position, _NULL_PARTITION_KEY, 1)
    if size:
        copy_bytes(out, position, data, records[field.VALUE_START, row], size)
    return position + size


@helper
def _write_entry_metadata(
    out: BytesOut, position: int, data: BytesIn, header_data: BytesIn, records: TableIn,
    messages: TableIn, entries: TableIn, batch: int, row: int, count: int,
) -> int:  # fmt: skip
    """Write it, with the first message's key: by that a whole entry is dispatched."""
    position = store_big(out, position, 4, entries[ENTRY_METADATA_SIZE, batch])
    start = entries[PRODUCER_START, batch]
    size = entries[PRODUCER_SIZE, batch]
    position = _write_bytes(out, position, _OF_PRODUCER, header_data, start, size)
    position = write_number(out, position, _OF_SEQUENCE, entries[SEQUENCE, batch])
    position = write_number(out, position, _OF_PUBLISH_TIME, entries[PUBLISH_TIME, batch])
    position = _write_key(
        out, position, data, records, messages, row, _OF_PARTITION_KEY, _OF_KEY_IS_BASE64
    )
    position = write_number(out, position, _OF_MESSAGES, count)
    if messages[ORDERING_SIZE, row] >= 0:
        start = messages[ORDERING_START, row]
        size = messages[ORDERING_SIZE, row]
        position = _write_bytes(out, position, _OF_ORDERING_KEY, header_data, start, size)
    start = entries[REST_START, batch]
    size = entries[REST_SIZE, batch]
    copy_bytes(out, position, header_data, start, size)
    return position + size


@kernel
def write_pulsar(
    data: BytesIn, header_data: BytesIn, batches: TableIn, records: TableIn, headers: TableIn,
    header_start: NumbersIn, messages: TableIn, entries: TableIn, body_starts: NumbersIn,
    out: BytesOut,
) -> None:  # fmt: skip
    """Write every body at its place, but for the checksum."""
    for batch in range(batches.shape[1]):
        count = batches[field.RECORDS, batch]
        if count == 0:
            continue
        first = batches[field.FIRST_RECORD, batch]
        position = store_big(out, body_starts[batch], 2, CHECKSUM_MAGIC) + 4
        position = _write_entry_metadata(
            out, position, data, header_data, records, messages, entries, batch, first, count
        )
        for row in range(first, first + count):
            position = _write_message(
                out, position, data, header_data, records, headers, header_start, messages, row
            )
