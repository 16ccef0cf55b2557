"""What an entry of a Pulsar producer has to be, also within, before it is stored.

What is sound here, Pulsar's clients and `decode` can read. What is encrypted, and one of several
chunks of a message, can't be looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.limits import DECODED_ROWS, INFLATED_BATCH_BYTES
from penstock.records.columns import as_bytes
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.kernels.arguments import BytesIn, TableOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_big
from penstock.records.kernels.protobuf import WIRE_BYTES, WIRE_VARINT, next_field
from penstock.records.pulsar import metadata
from penstock.records.pulsar.compression import inflate_pulsar
from penstock.records.pulsar.entry import without_checksum
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata

if TYPE_CHECKING:
    from penstock.records.columns import Bytes
    from penstock.records.pulsar.entry import Entry

SOUND: Final = -1
NO_BATCH: Final = -1
"""The number of messages of an entry that is one message."""
_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER
_PROPERTIES_MAX: Final = int(DECODED_ROWS)


def validate_pulsar(body: memoryview, entry: Entry) -> None:
    """Check the metadata of an entry, and what it holds: `entry` is what `body` was parsed to.

    The checksum has been checked. Raises MalformedBatchError, and OverLimitError where there is
    more than may be inflated or decoded.
    """
    data = as_bytes(without_checksum(body))
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    said, is_batch, is_chunk = entry.metadata, entry.is_batch, entry.is_chunk
    count = entry.message_count if is_batch else NO_BATCH
    start = read_metadata(data, count, said.compression, is_chunk, fields)
    if start == MALFORMED:
        raise MalformedBatchError("the metadata of the entry can't be read")
    if is_chunk or said.encryption_keys:
        return  # What is within can't be looked for.
    if said.compression:
        size = said.uncompressed_size
        if size > INFLATED_BATCH_BYTES:
            raise OverLimitError(f"{size} bytes in one entry, over {INFLATED_BATCH_BYTES}")
        payload = inflate_pulsar(said.compression, data[start:].data, size)
        if is_batch:
            _check_messages(payload, count)
    elif is_batch:
        _check_messages(data[start:], count)


def _check_messages(payload: Bytes, count: int) -> None:
    if count > DECODED_ROWS:
        raise OverLimitError(f"{count} messages in a batch, over {DECODED_ROWS}")
    fault = check_messages(payload, count)
    if fault == count:
        raise MalformedBatchError("there are bytes behind the last message, or too many properties")
    if fault != SOUND:
        raise MalformedBatchError(f"message {fault} of a batch can't be read")


@kernel
def read_metadata(
    data: BytesIn, count: int, compression: int, is_chunk: int, fields: TableOut
) -> int:
    """Fill the fields of an entry's metadata; returns where its payload starts, or MALFORMED.

    It is that also where a reader of the fields does not take the entry for what protobuf did: that
    cuts numbers that are too large, and knows no other codecs.
    """
    if len(data) < 4:
        return int64(MALFORMED)
    size = load_big(data, 0, 4)
    end = 4 + size
    if end > len(data) or not metadata.read_fields(data, 4, end, metadata.OF_ENTRY, fields):
        return int64(MALFORMED)
    if fields[metadata.PROPERTIES, 0] > 0:
        position = int64(4)
        while position < end:
            number, wire_type, start, size, position = next_field(data, position, end)
            if number == metadata.PROPERTIES_OF_ENTRY and (
                wire_type != WIRE_BYTES or not _is_property(data, start, start + size)
            ):
                return int64(MALFORMED)
    return end if _are_same(fields, count, compression, is_chunk) else int64(MALFORMED)


@helper
def _are_same(fields: TableOut, count: int, compression: int, is_chunk: int) -> bool:
    """Whether the fields say what was found otherwise."""
    said = fields[metadata.MESSAGES, 0] if fields[metadata.MESSAGES, 1] >= 0 else NO_BATCH
    return (
        said == count
        and fields[metadata.COMPRESSION, 0] == compression
        and (fields[metadata.CHUNKS, 0] > 1) == (is_chunk != 0)
        and fields[metadata.PROPERTIES, 0] <= _PROPERTIES_MAX
    )


@kernel
def check_messages(data: BytesIn, count: int) -> int:
    """Return SOUND where `count` messages are all of `data`, else the index of one that is not.

    It is `count` where there is more, or where they have too many properties.
    """
    position = int64(0)
    properties_left = int64(_PROPERTIES_MAX)
    for index in range(count):
        if len(data) - position < 4:
            return index
        size = load_big(data, position, 4)
        position += 4
        if size > len(data) - position:
            return index
        payload, properties = _read_message(data, position, position + size)
        position += size
        if payload < 0 or payload > len(data) - position:
            return index
        position += payload
        properties_left -= properties
    return int64(SOUND) if position == len(data) and properties_left >= 0 else count


@helper
def _read_message(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Return the payload's size that a message's metadata says, or MALFORMED, and how many
    properties it has.
    """
    payload, properties = int64(MALFORMED), int64(0)
    while position < end:
        number, wire_type, value, size, position = next_field(data, position, end)
        if position == MALFORMED:
            return int64(MALFORMED), properties
        if number == _PAYLOAD_SIZE and wire_type == WIRE_VARINT:
            payload = value
        elif number == metadata.PROPERTIES_OF_BATCHED:
            properties += 1
            if wire_type != WIRE_BYTES or not _is_property(data, value, value + size):
                return int64(MALFORMED), properties
    return payload, properties


@helper
def _is_property(data: BytesIn, position: int, end: int) -> bool:
    """Whether these bytes are a KeyValue, both of whose fields are required."""
    has_name = has_content = False
    while position < end:
        number, wire_type, _, _, position = next_field(data, position, end)
        if position == MALFORMED or wire_type != WIRE_BYTES:
            return False
        has_name = has_name or number == 1
        has_content = has_content or number == 2
    return has_name and has_content
