"""A message set as a producer sends it, turned into one batch of magic 2.

It is any number of messages, or one whose value is a compressed set of others. All are of one
magic, none of the others is compressed. Their offsets mean nothing yet: the batch counts from 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.limits import DECODED_ROWS
from penstock.log.header import HEADER_SIZE, NO_TIMESTAMP, Magic, read_header, rebuilt_header
from penstock.records import field
from penstock.records.batch_headers import restate_times
from penstock.records.columns import Bytes, Columns, Numbers, as_bytes
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.kafka.compression import compress_kafka, inflate_kafka
from penstock.records.kafka.encode import encode_kafka
from penstock.records.kernels.arguments import BytesIn, TableOut, int64
from penstock.records.kernels.crc32 import crc32
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import load_big
from penstock.records.kernels.times import microseconds
from penstock.records.message_sets import layout
from penstock.records.message_sets.faults import Fault, MessageSetError
from penstock.records.message_sets.lz4 import with_right_checksum

if TYPE_CHECKING:
    from penstock.session import Buffer

_LZ4: Final = 3
_CODECS: Final = (1, 2, _LZ4)
"""gzip, snappy and lz4. zstd came with batches."""

_REASONS: Final = {
    Fault.CORRUPT: "it is cut off, or the checksum of a message does not fit",
    Fault.INVALID: "the fields of a message contradict each other, or those of another message",
    Fault.TIMESTAMP: "a message has the time of a broker, or one before 1970",
}


def batch_of_messages(message_set: Buffer) -> memoryview:
    """Return the batch of magic 2 that these messages are; it is compressed as they were.

    Raises MessageSetError.
    """
    data = as_bytes(message_set)
    count = _count(data)
    if count == 0:
        raise MessageSetError(Fault.INVALID, "there is no message")
    magic = int(data[layout.MAGIC_AT])
    codec = int(data[layout.ATTRIBUTES_AT]) & layout.COMPRESSION if count == 1 else 0
    if codec:
        data = _inflated(data, magic, codec)
        count = _count(data)
        if count == 0:
            raise MessageSetError(Fault.INVALID, "there is no message in the compressed one")
    try:
        batch = encode_kafka(_columns(data, magic, count))
    except OverLimitError as error:
        raise MessageSetError(Fault.TOO_LARGE, str(error)) from error
    return _compressed(batch, codec) if codec else batch


def _count(data: Bytes) -> int:
    count = count_messages(data)
    if count < 0:
        raise _refused(Fault.CORRUPT)
    if count > DECODED_ROWS:
        raise MessageSetError(Fault.TOO_LARGE, f"{count} messages at once, over {DECODED_ROWS}")
    return count


def _read(data: Bytes, magic: int, codec: int, count: int) -> Numbers:
    records = np.empty((field.RECORD_FIELDS, count), np.int64)
    fault = read_messages(data, magic, codec, records)
    if fault:
        raise _refused(Fault(fault))
    return records


def _refused(fault: Fault) -> MessageSetError:
    return MessageSetError(fault, _REASONS[fault])


def _inflated(data: Bytes, magic: int, codec: int) -> Bytes:
    """Return the messages in the value of the one that `data` is."""
    wrapper = _read(data, magic, codec, 1)
    if codec not in _CODECS:
        raise MessageSetError(Fault.COMPRESSION, f"compression {codec} in a message set")
    start, size = wrapper[[field.VALUE_START, field.VALUE_SIZE], 0]
    if size < 0:
        raise MessageSetError(Fault.INVALID, "a compressed message without a value")
    value = data[start : start + size].data
    if magic == 0 and codec == _LZ4:
        value = with_right_checksum(value)
    try:
        return inflate_kafka(codec, value)
    except MalformedBatchError as error:
        raise MessageSetError(Fault.INVALID, str(error)) from error


def _columns(data: Bytes, magic: int, count: int) -> Columns:
    records = _read(data, magic, 0, count)
    batches = np.zeros((field.BATCH_FIELDS, 1), np.int64)
    batches[field.MAGIC] = Magic.KAFKA
    batches[field.LAST_DELTA] = count - 1
    batches[field.RECORDS] = batches[field.COUNT] = count
    restate_times(batches, records)
    no_headers = np.empty((field.HEADER_FIELDS, 0), np.int64)
    return Columns(data, data, records, no_headers, np.zeros(count + 1, np.int64), batches)


def _compressed(batch: memoryview, codec: int) -> memoryview:
    header = read_header(batch)
    body = compress_kafka(codec, batch[HEADER_SIZE:])
    return memoryview(rebuilt_header(header._replace(attributes=codec), body) + body)


@kernel
def count_messages(data: BytesIn) -> int:
    """Return how many messages these bytes are, or -1 where they are not whole messages."""
    position = 0
    count = 0
    while position < len(data):
        if len(data) - position < layout.SMALLEST:
            return -1
        size = layout.PREFIX + load_big(data, position + layout.SIZE_AT, 4)
        if size < layout.SMALLEST or size > len(data) - position:
            return -1
        position += size
        count += 1
    return count


@helper
def _read_span(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read the size of a nullable byte string; returns it and where it ends, -1 if nowhere."""
    if end - position < 4:
        return int64(0), int64(-1)
    size = load_big(data, position, 4)
    if size == 0xFFFFFFFF:
        return int64(-1), position + 4
    if size > end - position - 4:
        return int64(0), int64(-1)
    return size, position + 4 + size


@helper
def _read_body(data: BytesIn, position: int, end: int, records: TableOut, row: int) -> bool:
    """Read key and value, which are all that is left of a message; False if they are not."""
    size, position = _read_span(data, position, end)
    records[field.KEY_SIZE, row] = size
    records[field.KEY_START, row] = position - max(size, 0)
    if position < 0:
        return False
    size, position = _read_span(data, position, end)
    records[field.VALUE_SIZE, row] = size
    records[field.VALUE_START, row] = position - max(size, 0)
    return position == end


@helper
def _read_time(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read attributes and timestamp of a message of magic 1; returns the time and a Fault, or 0."""
    if int64(data[position + layout.ATTRIBUTES_AT]) & layout.LOG_APPEND_TIME:
        return int64(NO_TIMESTAMP), int64(Fault.TIMESTAMP)
    if end - position < layout.TIMESTAMP_AT + layout.TIMESTAMP_SIZE:
        return int64(NO_TIMESTAMP), int64(Fault.INVALID)
    time = load_big(data, position + layout.TIMESTAMP_AT, layout.TIMESTAMP_SIZE)
    return time, int64(Fault.TIMESTAMP if time < NO_TIMESTAMP else 0)


@kernel
def read_messages(data: BytesIn, magic: int, codec: int, records: TableOut) -> int:
    """Fill the table from messages of this magic and codec; returns a Fault, or 0.

    `count_messages` has found as many as the table has room for.
    """
    position = 0
    for row in range(records.shape[1]):
        end = position + layout.PREFIX + load_big(data, position + layout.SIZE_AT, 4)
        stored = load_big(data, position + layout.CRC_AT, 4)
        if crc32(data, position + layout.MAGIC_AT, end) != stored:
            return Fault.CORRUPT
        its_codec = int64(data[position + layout.ATTRIBUTES_AT]) & layout.COMPRESSION
        its_magic = int64(data[position + layout.MAGIC_AT])
        if its_magic != magic or its_magic > 1 or its_codec != codec:
            return Fault.INVALID
        time, body = int64(NO_TIMESTAMP), position + layout.TIMESTAMP_AT
        if magic == 1:
            time, fault = _read_time(data, position, end)
            if fault:
                return fault
            body += layout.TIMESTAMP_SIZE
        if not _read_body(data, body, end, records, row):
            return Fault.INVALID
        records[field.OFFSET, row] = row
        records[field.TIMESTAMP, row] = microseconds(time)
        records[field.HEADER_COUNT, row] = 0
        position = end
    return 0
