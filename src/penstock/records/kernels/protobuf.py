"""Protobuf's wire format, read and written field by field."""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, BytesOut, int64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import MALFORMED, read_varint, write_varint

WIRE_VARINT: Final = 0
_FIXED_64: Final = 1
WIRE_BYTES: Final = 2
_FIXED_32: Final = 5


@helper
def _short_field(data: BytesIn, position: int, end: int) -> tuple[int, int, int, int, int]:
    """As `next_field` where a field begins with two numbers that take a byte each, as nearly all
    do, and is a number or bytes; else the position is MALFORMED.
    """
    nothing = int64(0)
    if 0 <= position < end - 1 and data[position] < 0x80 and data[position + 1] < 0x80:
        tag, value = int64(data[position]), int64(data[position + 1])
        behind = position + 2
        if tag & 7 == WIRE_VARINT and tag > 7:
            return tag >> 3, tag & 7, value, nothing, behind
        if tag & 7 == WIRE_BYTES and tag > 7 and value <= end - behind:
            return tag >> 3, tag & 7, behind, value, behind + value
    return nothing, nothing, nothing, nothing, int64(MALFORMED)


@helper
def next_field(data: BytesIn, position: int, end: int) -> tuple[int, int, int, int, int]:
    """Read one field: its number, wire type, number or start, size, and the position behind it.

    The position is MALFORMED where the field does not end before `end` or its wire type is one
    that Pulsar does not use.
    """
    nothing = int64(0)
    bad = int64(MALFORMED)
    short = _short_field(data, position, end)
    if short[4] != MALFORMED:
        return short
    tag, position = read_varint(data, position, end)
    wire_type = tag & 7
    number = (tag >> 3) & 0x1FFFFFFF
    if position == MALFORMED or number == 0:
        return nothing, nothing, nothing, nothing, bad
    if wire_type == WIRE_VARINT:
        value, position = read_varint(data, position, end)
        return number, wire_type, value, nothing, position
    size = int64(8) if wire_type == _FIXED_64 else int64(4)
    if wire_type == WIRE_BYTES:
        size, position = read_varint(data, position, end)
    elif wire_type not in (_FIXED_64, _FIXED_32):
        return nothing, nothing, nothing, nothing, bad
    if position == MALFORMED or size < 0 or size > end - position:
        return nothing, nothing, nothing, nothing, bad
    return number, wire_type, position, size, position + size


@helper
def write_number(out: BytesOut, position: int, number: int, value: int) -> int:
    """Write a field that is a variable-length integer; returns the position behind it."""
    position = write_varint(out, position, number << 3 | WIRE_VARINT)
    return write_varint(out, position, value)
