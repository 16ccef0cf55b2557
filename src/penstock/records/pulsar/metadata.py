"""The fields of the metadata in front of an entry, found in one walk over protobuf's wire format.

A table maps their numbers to the fields below.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from google.protobuf.message import Message

from penstock.records.columns import Numbers
from penstock.records.kernels.arguments import BytesIn, NumbersIn, TableOut, int64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import MALFORMED
from penstock.records.kernels.protobuf import WIRE_BYTES, WIRE_VARINT, next_field
from penstock.records.pulsar.metadata_pb2 import MessageMetadata, SingleMessageMetadata

PRODUCER: Final = 0
SEQUENCE: Final = 1
PUBLISH_TIME: Final = 2
PROPERTIES: Final = 3
PARTITION_KEY: Final = 4
COMPRESSION: Final = 5
UNCOMPRESSED_SIZE: Final = 6
MESSAGES: Final = 7
EVENT_TIME: Final = 8
ENCRYPTION_KEYS: Final = 9
KEY_IS_BASE64: Final = 10
ORDERING_KEY: Final = 11
NULL_VALUE: Final = 12
NULL_KEY: Final = 13
CHUNKS: Final = 14
MARKER: Final = 15
IGNORED: Final = 16
OTHER: Final = 17
FIELDS: Final = 18

_ARE_BYTES: Final = (PRODUCER, PROPERTIES, PARTITION_KEY, ENCRYPTION_KEYS, ORDERING_KEY)
_WIRE_TYPES = np.array(
    [WIRE_BYTES if field in _ARE_BYTES else WIRE_VARINT for field in range(FIELDS)]
)
_HIGHEST_NUMBER: Final = max(MessageMetadata.DESCRIPTOR.fields_by_number)


def _table(message: type[Message], **fields: int) -> Numbers:
    """Return the field that each field number of `message` stands for."""
    table = np.full(_HIGHEST_NUMBER + 1, OTHER, np.int64)
    for name, field in fields.items():
        table[message.DESCRIPTOR.fields_by_name[name].number] = field
    return table


OF_ENTRY = _table(
    MessageMetadata,
    producer_name=PRODUCER,
    sequence_id=SEQUENCE,
    publish_time=PUBLISH_TIME,
    properties=PROPERTIES,
    partition_key=PARTITION_KEY,
    compression=COMPRESSION,
    uncompressed_size=UNCOMPRESSED_SIZE,
    num_messages_in_batch=MESSAGES,
    event_time=EVENT_TIME,
    encryption_keys=ENCRYPTION_KEYS,
    partition_key_b64_encoded=KEY_IS_BASE64,
    ordering_key=ORDERING_KEY,
    marker_type=MARKER,
    highest_sequence_id=IGNORED,
    null_value=NULL_VALUE,
    num_chunks_from_msg=CHUNKS,
    null_partition_key=NULL_KEY,
)
"""Of the metadata in front of an entry's payload, which is that of its message if it has one."""
PROPERTIES_OF_ENTRY: Final = MessageMetadata.PROPERTIES_FIELD_NUMBER
PROPERTIES_OF_BATCHED: Final = SingleMessageMetadata.PROPERTIES_FIELD_NUMBER


@helper
def read_fields(
    data: BytesIn, position: int, end: int, numbers: NumbersIn, fields: TableOut
) -> bool:
    """Fill `fields`, [field, 0] with a number or a start and [field, 1] with a size.

    The size of an absent field is -1. Of properties and other fields the number is how many there
    are. As protobuf has it, the last of several counts. False where the bytes are malformed.
    """
    for absent in range(FIELDS):
        fields[absent, 0] = 0
        fields[absent, 1] = -1
    while position < end:
        number, wire_type, value, size, position = next_field(data, position, end)
        if position == MALFORMED:
            return False
        field = numbers[number] if number <= _HIGHEST_NUMBER else int64(OTHER)
        if field in (OTHER, PROPERTIES):
            fields[field, 0] += 1
        elif wire_type == _WIRE_TYPES[field]:
            fields[field, 0] = value
            fields[field, 1] = size
    return True
