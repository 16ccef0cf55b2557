"""Text for many records at once: base64, decimal numbers, and what names begin with."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.records.columns import NAME_SIZE, NAME_START
from penstock.records.kernels.jit import (
    INPUT,
    INTEGER,
    MASK,
    MASK_INPUT,
    NOTHING,
    NUMBERS,
    NUMBERS_INPUT,
    OUTPUT,
    TABLE_INPUT,
    helper,
    kernel,
)
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
def base64_size(size: int) -> Any:
    """Return the bytes of the base64 text, padded, of so many bytes."""
    return (size + 2) // 3 * 4


@helper
def write_base64(out: Any, position: int, data: Any, start: int, size: int) -> Any:
    """Write bytes as base64 (RFC 4648, padded); returns the position behind it."""
    for index in range(0, size, 3):
        left = min(size - index, 3)
        group = np.int64(0)
        for step in range(3):
            byte = np.int64(data[start + index + step]) if step < left else np.int64(0)
            group = group << 8 | byte
        for step in range(4):
            digit = _DIGITS[(group >> (18 - 6 * step)) & 63]
            out[position + step] = digit if step <= left else _PADDING
        position += 4
    return position


@helper
def read_base64(out: Any, position: int, data: Any, start: int, size: int) -> Any:
    """Read base64, padded or not; returns the position behind the bytes, or -1 for other text."""
    while size > 0 and data[start + size - 1] == _PADDING:
        size -= 1
    group = np.int64(0)
    bits = 0
    for index in range(size):
        value = _VALUES[data[start + index]]
        if value == _NO_DIGIT:
            return np.int64(-1)
        group = (group << 6 | value) & 0xFFFF
        bits += 6
        if bits >= 8:
            bits -= 8
            out[position] = (group >> bits) & 0xFF
            position += 1
    return position


@kernel(NOTHING, INPUT, MASK, NUMBERS, NUMBERS, INTEGER, OUTPUT)
def decode_base64(data: Any, chosen: Any, starts: Any, sizes: Any, base: int, out: Any) -> None:
    """Replace the chosen spans of base64 by their bytes, which are in `out` and will be at `base`.

    A span that is no base64 stays as it is.
    """
    position = np.int64(0)
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
def _write_pair(out: Any, position: int, pair: int) -> None:
    out[position] = _PAIRS[2 * pair]
    out[position + 1] = _PAIRS[2 * pair + 1]


@helper
def _write_decimal(out: Any, end: int, number: int) -> Any:
    """Write a number in front of `end`; returns where it starts."""
    rest = np.uint64(number if number >= 0 else -max(number, -_LARGEST))
    position = end
    while rest >= 100:
        position -= 2
        _write_pair(out, position, np.int64(rest % np.uint64(100)))
        rest //= np.uint64(100)
    position -= 2
    _write_pair(out, position, np.int64(rest))
    if rest < 10:
        position += 1
    if number < 0:
        position -= 1
        out[position] = ord("-")
    return position


@kernel(NOTHING, NUMBERS_INPUT, MASK_INPUT, NUMBERS, NUMBERS, OUTPUT)
def write_decimals(numbers: Any, chosen: Any, starts: Any, sizes: Any, out: Any) -> None:
    """Write the chosen numbers, each within DECIMAL_SIZE bytes of its own; other sizes are -1."""
    end = np.int64(0)
    for index in range(len(numbers)):
        starts[index] = 0
        sizes[index] = -1
        if chosen[index]:
            end += DECIMAL_SIZE
            starts[index] = _write_decimal(out, end, numbers[index])
            sizes[index] = end - starts[index]


@kernel(NOTHING, INPUT, TABLE_INPUT, INPUT, NUMBERS_INPUT, MASK)
def mark_prefixes(data: Any, headers: Any, prefixes: Any, ends: Any, out: Any) -> None:
    """Mark the headers whose name begins with a prefix; they lie one behind the other."""
    for header in range(headers.shape[1]):
        start = headers[NAME_START, header]
        size = headers[NAME_SIZE, header]
        first = 0
        for prefix in range(len(ends)):
            length = ends[prefix] - first
            if size >= length and same_spans(data, start, prefixes, first, length):
                out[header] = True
                break
            first += length


@kernel(NOTHING, INPUT, NUMBERS_INPUT, NUMBERS_INPUT, MASK)
def mark_text(data: Any, starts: Any, sizes: Any, out: Any) -> None:
    """Mark the spans that are UTF-8; a null is."""
    for row in range(len(starts)):
        out[row] = is_text(data, starts[row], max(sizes[row], 0))
