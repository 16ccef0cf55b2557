"""Text for many records at once: base64, decimal numbers, and what names begin with."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.records import field
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    MaskOut,
    NumbersIn,
    NumbersOut,
    TableIn,
    int64,
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import is_text, same_spans

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DIGITS = np.frombuffer(_ALPHABET, np.uint8)
_NO_DIGIT = 64
_VALUES = np.full(256, _NO_DIGIT, np.uint8)
_VALUES[_DIGITS] = np.arange(64)
_PADDING = ord("=")
_LARGEST = (1 << 63) - 1
_PAIRS = np.frombuffer(b"".join(b"%02d" % pair for pair in range(100)), np.uint8)

DECIMAL_SIZE: Final = 20
"""Bytes of the longest decimal number of 64 bits, its sign included."""


@helper
def base64_size(size: int) -> int:
    """Return the bytes of the base64 text, padded, of so many bytes."""
    return (size + 2) // 3 * 4


@helper
def write_base64(out: BytesOut, position: int, data: BytesIn, start: int, size: int) -> int:
    """Write bytes as base64 (RFC 4648, padded); returns the position behind it."""
    for index in range(0, size, 3):
        left = min(size - index, 3)
        group = int64(0)
        for step in range(3):
            byte = int64(data[start + index + step]) if step < left else int64(0)
            group = group << 8 | byte
        for step in range(4):
            digit = _DIGITS[(group >> (18 - 6 * step)) & 63]
            out[position + step] = digit if step <= left else _PADDING
        position += 4
    return position


@helper
def read_base64(out: BytesOut, position: int, data: BytesIn, start: int, size: int) -> int:
    """Read base64, padded or not; returns the position behind the bytes, or -1 for other text."""
    while size > 0 and data[start + size - 1] == _PADDING:
        size -= 1
    group = int64(0)
    bits = 0
    for index in range(size):
        value = _VALUES[data[start + index]]
        if value == _NO_DIGIT:
            return int64(-1)
        group = (group << 6 | value) & 0xFFFF
        bits += 6
        if bits >= 8:
            bits -= 8
            out[position] = (group >> bits) & 0xFF
            position += 1
    return position


@helper
def read_padded_base64(out: BytesOut, position: int, data: BytesIn, start: int, size: int) -> int:
    """Read base64 that is padded as RFC 4648 has it; returns what `read_base64` does."""
    if size % 4 or (size and data[start + size - 3] == _PADDING):
        return int64(-1)
    return read_base64(out, position, data, start, size)


@helper
def read_decimal(data: BytesIn, start: int, size: int, longest: int) -> int:
    """Read a number of 1 to `longest` digits and no sign, at most 18; returns it, or -1."""
    if size < 1 or size > longest:
        return int64(-1)
    number = int64(0)
    for position in range(start, start + size):
        digit = int64(data[position]) - ord("0")
        if digit < 0 or digit > 9:
            return int64(-1)
        number = 10 * number + digit
    return number


@helper
def decimal_size(number: int) -> int:
    """Return the digits of a number that is not negative."""
    size = 1
    while number >= 10:
        number //= 10
        size += 1
    return size


@helper
def write_decimal(out: BytesOut, position: int, number: int) -> int:
    """Write a number that is not negative; returns the position behind it."""
    end = position + decimal_size(number)
    for place in range(end - 1, position - 1, -1):
        out[place] = ord("0") + number % 10
        number //= 10
    return end


@kernel
def decode_base64(
    data: BytesIn, chosen: MaskOut, starts: NumbersOut, sizes: NumbersOut, base: int, out: BytesOut
) -> None:
    """Replace the chosen spans of base64 by their bytes, which are in `out` and will be at `base`.

    A span that is no base64 stays as it is.
    """
    position = int64(0)
    for row in range(len(chosen)):
        if not chosen[row]:
            continue
        end = read_base64(out, position, data, starts[row], sizes[row])
        if end < 0:
            continue
        starts[row] = base + position
        sizes[row] = end - position
        position = end


@helper
def _write_pair(out: BytesOut, position: int, pair: int) -> None:
    out[position] = _PAIRS[2 * pair]
    out[position + 1] = _PAIRS[2 * pair + 1]


@helper
def _write_decimal(out: BytesOut, end: int, number: int) -> int:
    """Write a number in front of `end`; returns where it starts."""
    rest = uint64(number if number >= 0 else -max(number, -_LARGEST))
    position = end
    while rest >= 100:
        position -= 2
        _write_pair(out, position, int64(rest % uint64(100)))
        rest //= uint64(100)
    position -= 2
    _write_pair(out, position, int64(rest))
    if rest < 10:
        position += 1
    if number < 0:
        position -= 1
        out[position] = ord("-")
    return position


@kernel
def write_decimals(
    numbers: NumbersIn, chosen: MaskIn, starts: NumbersOut, sizes: NumbersOut, out: BytesOut
) -> None:
    """Write the chosen numbers, each within DECIMAL_SIZE bytes of its own; other sizes are -1."""
    end = int64(0)
    for index in range(len(numbers)):
        starts[index] = 0
        sizes[index] = -1
        if chosen[index]:
            end += DECIMAL_SIZE
            starts[index] = _write_decimal(out, end, numbers[index])
            sizes[index] = end - starts[index]


@kernel
def mark_prefixes(
    data: BytesIn, headers: TableIn, prefixes: BytesIn, ends: NumbersIn, out: MaskOut
) -> None:
    """Mark the headers whose name begins with a prefix; they lie one behind the other."""
    for header in range(headers.shape[1]):
        start = headers[field.NAME_START, header]
        size = headers[field.NAME_SIZE, header]
        first = 0
        for prefix in range(len(ends)):
            length = ends[prefix] - first
            if size >= length and same_spans(data, start, prefixes, first, length):
                out[header] = True
                break
            first += length


@kernel
def mark_text(data: BytesIn, starts: NumbersIn, sizes: NumbersIn, out: MaskOut) -> None:
    """Mark the spans that are UTF-8; a null is."""
    for row in range(len(starts)):
        out[row] = is_text(data, starts[row], max(sizes[row], 0))
