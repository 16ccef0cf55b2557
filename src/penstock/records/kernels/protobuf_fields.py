"""The fields of Pulsar's two metadata messages, found in one walk over protobuf's wire format.

Both say the same things about a message under different field numbers, so a table a message maps
its numbers to the fields below.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.records.kernels.jit import helper
from penstock.records.kernels.primitives import MALFORMED, read_varint

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
PAYLOAD_SIZE: Final = 16
COMPACTED_OUT: Final = 17
IGNORED: Final = 18
OTHER: Final = 19
FIELDS: Final = 20

WIRE_VARINT: Final = 0
_FIXED_64: Final = 1
WIRE_BYTES: Final = 2
_FIXED_32: Final = 5
_ARE_BYTES: Final = (PRODUCER, PROPERTIES, PARTITION_KEY, ENCRYPTION_KEYS, ORDERING_KEY)
_NUMBERS: Final = 35
"""One more than the highest field number of either message."""


def _table(fields: dict[int, int]) -> Any:
    table = np.full(_NUMBERS, OTHER, np.int64)
    for number, field in fields.items():
        table[number] = field
    return table


_WIRE_TYPES = np.array(
    [WIRE_BYTES if field in _ARE_BYTES else WIRE_VARINT for field in range(FIELDS)]
)

_HIGHEST_SEQUENCE_ID = 24
MESSAGE_METADATA = _table(
    {1: PRODUCER, 2: SEQUENCE, 3: PUBLISH_TIME, 4: PROPERTIES, 6: PARTITION_KEY}
    | {8: COMPRESSION, 9: UNCOMPRESSED_SIZE, 11: MESSAGES, 12: EVENT_TIME, 13: ENCRYPTION_KEYS}
    | {17: KEY_IS_BASE64, 18: ORDERING_KEY, 20: MARKER, _HIGHEST_SEQUENCE_ID: IGNORED}
    | {25: NULL_VALUE, 27: CHUNKS, 30: NULL_KEY}
)
SINGLE_METADATA = _table(
    {1: PROPERTIES, 2: PARTITION_KEY, 3: PAYLOAD_SIZE, 4: COMPACTED_OUT, 5: EVENT_TIME}
    | {6: KEY_IS_BASE64, 7: ORDERING_KEY, 8: SEQUENCE, 9: NULL_VALUE, 10: NULL_KEY}
)
PROPERTY_NUMBER_OF_MESSAGE: Final = 4
PROPERTY_NUMBER_OF_SINGLE: Final = 1


@helper
def next_field(data: Any, position: int, end: int) -> Any:
    """Read one field: its number, wire type, number or start, size, and the position behind it.

    The position is MALFORMED where the field does not end before `end` or its wire type is one
    that Pulsar does not use.
    """
    nothing = np.int64(0)
    bad = np.int64(MALFORMED)
    tag, position = read_varint(data, position, end)
    wire_type = tag & 7
    number = (tag >> 3) & 0x1FFFFFFF
    if position == MALFORMED or number == 0:
        return nothing, nothing, nothing, nothing, bad
    if wire_type == WIRE_VARINT:
        value, position = read_varint(data, position, end)
        return number, wire_type, value, nothing, position
    size = np.int64(8) if wire_type == _FIXED_64 else np.int64(4)
    if wire_type == WIRE_BYTES:
        size, position = read_varint(data, position, end)
    elif wire_type not in (_FIXED_64, _FIXED_32):
        return nothing, nothing, nothing, nothing, bad
    if position == MALFORMED or size < 0 or size > end - position:
        return nothing, nothing, nothing, nothing, bad
    return number, wire_type, position, size, position + size


@helper
def read_fields(data: Any, position: int, end: int, numbers: Any, fields: Any) -> Any:
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
        field = numbers[number] if number < _NUMBERS else np.int64(OTHER)
        if field in (OTHER, PROPERTIES):
            fields[field, 0] += 1
        elif wire_type == _WIRE_TYPES[field]:
            fields[field, 0] = value
            fields[field, 1] = size
    return True
