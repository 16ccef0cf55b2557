"""The smallest steps of the kernels: unaligned words, copies, variable-length integers, text.

Nothing here checks that a position lies in its buffer unless it says so: the kernels do, once for
everything that has a fixed size. The first six are what numba has no words for: the compiler has
its own code for them, which does what is written here.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.records.kernels.arguments import BytesIn, BytesOut, int64, uint64
from penstock.records.kernels.declaring import helper

MALFORMED: Final = -1
"""A position that says: the bytes before it made no sense, or ended too early."""
_HIGH_BITS: Final = uint64(0x8080808080808080)
"""What is set in none of 8 bytes of ASCII."""


def load_word(data: Any, position: int) -> int:
    """Return the 8 bytes at a position as an unsigned little-endian number."""
    return uint64(int.from_bytes(bytes(data[position : position + 8]), "little"))


def load_half(data: Any, position: int) -> int:
    """Return the 4 bytes at a position as an unsigned little-endian number."""
    return int64(int.from_bytes(bytes(data[position : position + 4]), "little"))


def store_word(out: Any, position: int, number: int) -> None:
    """Write a number's 8 bytes, little-endian."""
    for index in range(8):
        out[position + index] = (int(number) >> 8 * index) & 0xFF


def store_half(out: Any, position: int, number: int) -> None:
    """Write the lower 4 bytes of a number, little-endian."""
    for index in range(4):
        out[position + index] = (int(number) >> 8 * index) & 0xFF


def copy_bytes(target: Any, position: int, source: Any, start: int, size: int) -> None:
    """Copy bytes from one buffer to another, or to a place in the same that overlaps theirs."""
    target[position : position + size] = source[start : start + size]


def prefetch(data: Any, position: int) -> None:
    """Have an element of an array at hand, for it is to be read soon."""


@helper
def load_big(data: BytesIn, position: int, size: int) -> int:
    """Return `size` bytes as an unsigned big-endian number, signed where `size` is 8."""
    number = int64(0)
    for index in range(size):
        # Of an index without a sign the compiler need not ask which end of the array it counts
        # from, and sees that all of them are one word.
        number = (number << 8) | int64(data[uint64(position + index)])
    return number


@helper
def store_big(out: BytesOut, position: int, size: int, number: int) -> int:
    """Write a number of `size` bytes, big-endian; returns the position behind it."""
    for index in range(size):
        out[uint64(position + index)] = (number >> (8 * (size - 1 - index))) & 0xFF
    return position + size


@helper
def store_little(out: BytesOut, position: int, size: int, number: int) -> int:
    """Write a number of 4 or 8 bytes, little-endian; returns the position behind it."""
    if size == 8:
        store_word(out, position, number)
    else:
        store_half(out, position, number)
    return position + size


@helper
def read_varint(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned variable-length integer of at most 10 bytes, all of them before `end`.

    Returns it with the position behind it, or with MALFORMED, also where `position` is that.
    """
    if 0 <= position < end and data[uint64(position)] < 0x80:
        return int64(data[uint64(position)]), position + 1  # Nearly all are that short.
    number = int64(0)
    shift = 0 if position >= 0 else 70
    while position < end and shift < 70:
        byte = int64(data[uint64(position)])
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    return int64(0), int64(MALFORMED)


@helper
def read_zigzag(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read a signed variable-length integer as Kafka writes it; checked as `read_varint`."""
    number, position = read_varint(data, position, end)
    return unzigzag(number), position


@helper
def varint_size(number: int) -> int:
    """Return the bytes that `number`, taken as unsigned, is written in."""
    size = 1
    rest = (number >> 7) & 0x01FFFFFFFFFFFFFF
    while rest:
        size += 1
        rest >>= 7
    return size


@helper
def write_varint(out: BytesOut, position: int, number: int) -> int:
    """Write `number`, taken as unsigned; returns the position behind it."""
    rest = (number >> 7) & 0x01FFFFFFFFFFFFFF
    low = number & 0x7F
    while rest:
        out[position] = low | 0x80
        position += 1
        low = rest & 0x7F
        rest >>= 7
    out[position] = low
    return position + 1


@helper
def zigzag(number: int) -> int:
    """Return the number that stands for a signed one: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return (number << 1) ^ (number >> 63)


@helper
def unzigzag(number: int) -> int:
    """Return the signed number that one, taken as unsigned, stands for."""
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)


@helper
def same_spans(data: BytesIn, start: int, other: BytesIn, at: int, size: int) -> bool:
    """Whether these bytes of two buffers are the same."""
    index = 0
    while index + 8 <= size:
        if load_word(data, start + index) != load_word(other, at + index):
            return False
        index += 8
    while index < size:
        if data[start + index] != other[at + index]:
            return False
        index += 1
    return True


@helper
def same_bytes(data: BytesIn, start: int, size: int, expected: BytesIn) -> bool:
    """Whether these bytes are all of `expected`, an array."""
    return size == len(expected) and same_spans(data, start, expected, 0, size)


@helper
def _is_ascii(data: BytesIn, start: int, size: int) -> bool:
    """Whether no byte has its highest bit set; the last word may overlap the one before it."""
    bits = uint64(0)
    position = start
    if size >= 8:
        last = start + size - 8
        while position < last:
            bits |= load_word(data, position)
            position += 8
        bits |= load_word(data, last)
    elif start + 8 <= len(data):
        # What stands behind them in the word is shifted out.
        bits = load_word(data, start) & ((uint64(1) << uint64(8 * size)) - uint64(1))
    else:
        while position < start + size:
            bits |= uint64(data[position])
            position += 1
    return bits & _HIGH_BITS == 0


@helper
def is_text(data: BytesIn, start: int, size: int) -> bool:
    """Whether these bytes are well-formed UTF-8 (RFC 3629)."""
    return _is_ascii(data, start, size) or _is_utf8(data, start, start + size)


@helper
def _is_utf8(data: BytesIn, position: int, end: int) -> bool:
    while position < end:
        byte = data[position]
        position += 1
        if byte < 0x80:
            continue
        length = _sequence_length(byte)
        if length == 0 or position + length - 1 > end:
            return False
        lowest, highest = _second_byte_range(byte)
        if data[position] < lowest or data[position] > highest:
            return False
        for index in range(1, length - 1):
            if data[position + index] & 0xC0 != 0x80:
                return False
        position += length - 1
    return True


@helper
def _sequence_length(first: int) -> int:
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    if 0xF0 <= first <= 0xF4:
        return 4
    return 0


@helper
def _second_byte_range(first: int) -> tuple[int, int]:
    """Rule out overlong forms, surrogates and what lies above U+10FFFF."""
    if first == 0xE0:
        return 0xA0, 0xBF
    if first == 0xED:
        return 0x80, 0x9F
    if first == 0xF0:
        return 0x90, 0xBF
    if first == 0xF4:
        return 0x80, 0x8F
    return 0x80, 0xBF
