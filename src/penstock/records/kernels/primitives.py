"""The smallest steps of the kernels: unaligned words, copies, variable-length integers, text.

Nothing here checks that a position lies in its buffer unless it says so: the kernels do, once for
everything that has a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils

from penstock.records.kernels.arguments import BytesIn, BytesOut, int64, uint64
from penstock.records.kernels.jit import helper, intrinsic

_cgutils: Any = cgutils
MALFORMED: Final = -1
"""A position that says: the bytes before it made no sense, or ended too early."""
_HIGH_BITS: Final = uint64(0x8080808080808080)
"""What is set in none of 8 bytes of ASCII."""


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, bits: int) -> Any:
    """Return a pointer to a number at the place that the first two arguments say."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    pointer = builder.gep(array.data, [arguments[1]])
    return builder.bitcast(pointer, ir.IntType(bits).as_pointer())


def _load_word(_context: Any, data: Any, _position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, arguments, 64), align=1)

    return types.uint64(data, types.int64), generate


def _load_half(_context: Any, data: Any, _position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = builder.load(_pointer(context, builder, signature, arguments, 32), align=1)
        return builder.zext(half, ir.IntType(64))

    return types.int64(data, types.int64), generate


def _store(bits: int) -> Any:
    def typed(_context: Any, out: Any, _position: Any, _number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = builder.trunc(arguments[2], ir.IntType(bits)) if bits < 64 else arguments[2]
            builder.store(number, _pointer(context, builder, signature, arguments, bits), align=1)
            return context.get_dummy_value()

        return types.void(out, types.int64, types.int64), generate

    return intrinsic(typed)


load_word: Callable[[BytesIn, int], int] = intrinsic(_load_word)
"""(data, position): return the 8 bytes at a position as an unsigned little-endian number."""
load_half: Callable[[BytesIn, int], int] = intrinsic(_load_half)
"""(data, position): return the 4 bytes at a position as an unsigned little-endian number."""
_store_word: Callable[[BytesOut, int, int], None] = _store(64)
_store_half: Callable[[BytesOut, int, int], None] = _store(32)


def _copy_bytes(_context: Any, target: Any, _at: Any, source: Any, _start: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = context.make_array(signature.args[0])(context, builder, arguments[0])
        taken = context.make_array(signature.args[2])(context, builder, arguments[2])
        _cgutils.raw_memcpy(
            builder,
            builder.gep(into.data, [arguments[1]]),
            builder.gep(taken.data, [arguments[3]]),
            arguments[4],
            1,
        )
        return context.get_dummy_value()

    integer = types.int64
    return types.void(target, integer, source, integer, integer), generate


copy_bytes: Callable[[BytesOut, int, BytesIn, int, int], None] = intrinsic(_copy_bytes)
"""(target, position, source, position, size): copy bytes from one buffer to another."""


@helper
def load_big(data: BytesIn, position: int, size: int) -> int:
    """Return `size` bytes as an unsigned big-endian number, signed where `size` is 8."""
    number = int64(0)
    for index in range(size):
        number = (number << 8) | int64(data[position + index])
    return number


@helper
def store_big(out: BytesOut, position: int, size: int, number: int) -> int:
    """Write a number of `size` bytes, big-endian; returns the position behind it."""
    for index in range(size):
        out[position + index] = (number >> (8 * (size - 1 - index))) & 0xFF
    return position + size


@helper
def store_little(out: BytesOut, position: int, size: int, number: int) -> int:
    """Write a number of 4 or 8 bytes, little-endian; returns the position behind it."""
    if size == 8:
        _store_word(out, position, number)
    else:
        _store_half(out, position, number)
    return position + size


@helper
def read_varint(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned variable-length integer of at most 10 bytes, all of them before `end`.

    Returns it with the position behind it, or with MALFORMED, also where `position` is that.
    """
    number = int64(0)
    shift = 0 if position >= 0 else 70
    while position < end and shift < 70:
        byte = int64(data[position])
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
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1), position


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
