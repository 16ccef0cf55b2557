"""The words of JSON (RFC 8259): where strings, numbers and whole values end, and what they say.

A position below zero is -1 less the number of a fault.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersOut, int64, uint64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import load_word
from penstock.records.values import fault

DEPTH: Final = 512
"""Levels of what is passed over."""

QUOTE: Final = ord('"')
BACKSLASH: Final = ord("\\")
COMMA: Final = ord(",")
COLON: Final = ord(":")
OPEN: Final = ord("{")
CLOSE: Final = ord("}")
OPEN_LIST: Final = ord("[")
CLOSE_LIST: Final = ord("]")
MINUS: Final = ord("-")
_PLUS: Final = ord("+")
_POINT: Final = ord(".")
ZERO: Final = ord("0")
_NINE: Final = ord("9")
_SPACE: Final = ord(" ")

_ONES: Final = uint64(0x0101010101010101)
_QUOTES: Final = uint64(0x2222222222222222)
_BACKSLASHES: Final = uint64(0x5C5C5C5C5C5C5C5C)
_SPACES: Final = uint64(0x2020202020202020)
_HIGH_BITS: Final = uint64(0x8080808080808080)


@helper
def behind_space(data: BytesIn, position: int, end: int) -> int:
    while position < end and data[position] <= _SPACE:
        byte = data[position]
        if byte != _SPACE and byte != 10 and byte != 13 and byte != 9:  # noqa: PLR1714
            break
        position += 1
    return position


@helper
def _bytes_before(marks: int) -> int:
    """Return how many bytes of a word are before the first whose highest bit, its mark, is set."""
    below = (marks & (~marks + uint64(1))) - uint64(1)
    return int64((below & _ONES) * _ONES >> uint64(56)) - 1


@helper
def string_end(data: BytesIn, position: int, end: int) -> tuple[int, int]:
    """Return where the string's closing quote is and whether it has escapes; or -1 and why."""
    escaped = int64(0)
    while position < end:
        if position + 8 <= end:
            # Eight plain characters at once: no quote, no backslash, no control character.
            word = load_word(data, position)
            quotes = word ^ _QUOTES
            slashes = word ^ _BACKSLASHES
            found = (
                ((quotes - _ONES) & ~quotes)
                | ((slashes - _ONES) & ~slashes)
                | ((word - _SPACES) & ~word)
            )
            marks = found & _HIGH_BITS
            if marks == 0:
                position += 8
                continue
            position += _bytes_before(marks)
        byte = data[position]
        if byte == QUOTE:
            return position, escaped
        if byte < _SPACE:
            return int64(-1), int64(fault.UNEXPECTED)
        if byte == BACKSLASH:
            escaped = int64(1)
            position += 1
        position += 1
    return int64(-1), int64(fault.ENDS_EARLY)


@helper
def is_digit(byte: int) -> bool:
    return ZERO <= byte <= _NINE


@helper
def _digits_end(data: BytesIn, position: int, end: int) -> int:
    while position < end and is_digit(data[position]):
        position += 1
    return position


@helper
def _number_end(data: BytesIn, position: int, end: int) -> int:
    """Return where a number ends, or -1 where there is none."""
    if position < end and data[position] == MINUS:
        position += 1
    start = position
    position = _digits_end(data, position, end)
    if position == start or (data[start] == ZERO and position > start + 1):
        return int64(-1)
    if position < end and data[position] == _POINT:
        start = position + 1
        position = _digits_end(data, start, end)
        if position == start:
            return int64(-1)
    if position < end and data[position] | 0x20 == ord("e"):
        position += 1
        if position < end and (data[position] == _PLUS or data[position] == MINUS):
            position += 1
        start = position
        position = _digits_end(data, start, end)
        if position == start:
            return int64(-1)
    return position


@helper
def literal_end(data: BytesIn, position: int, end: int) -> int:
    """Return where `true`, `false` or `null` ends, or -1 where there is none of them."""
    if position + 4 > end:
        return int64(-1)
    four = (
        int64(data[position]) << 24
        | int64(data[position + 1]) << 16
        | int64(data[position + 2]) << 8
        | int64(data[position + 3])
    )
    if four == 0x74727565 or four == 0x6E756C6C:  # noqa: PLR1714  # true, null
        return position + 4
    is_false = four == 0x66616C73 and position + 5 <= end and data[position + 4] == ord("e")
    return position + 5 if is_false else int64(-1)


@helper
def plain_end(data: BytesIn, position: int, end: int) -> int:
    """Return where a number or a literal ends, or -1."""
    if data[position] == MINUS or is_digit(data[position]):
        return _number_end(data, position, end)
    return literal_end(data, position, end)


@helper
def _scalar_end(data: BytesIn, position: int, end: int) -> int:
    if data[position] != QUOTE:
        last = plain_end(data, position, end)
        return last if last >= 0 else int64(-1 - fault.UNEXPECTED)
    last, why = string_end(data, position + 1, end)
    return last + 1 if last >= 0 else -1 - why


@kernel
def pass_over(data: BytesIn, position: int, end: int, levels: NumbersOut, first: int) -> int:
    """Return where the value ends that begins here; `levels` has room for DEPTH from `first` on."""
    depth = int64(0)
    while True:
        position = behind_space(data, position, end)
        if position >= end:
            return int64(-1 - fault.ENDS_EARLY)
        level = int64(data[position])
        if level != OPEN and level != OPEN_LIST:  # noqa: PLR1714  # numba builds no tuple
            position = _scalar_end(data, position, end)
        elif _is_empty(data, position, end):
            position = behind_space(data, position + 1, end) + 1
        elif depth == DEPTH:
            return int64(-1 - fault.TOO_DEEP)
        else:
            levels[first + depth] = level
            depth += 1
            position = _next_value(data, position + 1, end, level)
            if position >= 0:
                continue
        position, depth = _behind_ends(data, position, end, levels, first, depth)
        if position < 0 or depth == 0:
            return position
        position = _next_value(data, position + 1, end, levels[first + depth - 1])
        if position < 0:
            return position


@helper
def _behind_ends(
    data: BytesIn, position: int, end: int, levels: NumbersOut, first: int, depth: int
) -> tuple[int, int]:
    """Return where the comma is behind a value, and the levels left; all that end here are gone."""
    while position >= 0 and depth > 0:
        position = behind_space(data, position, end)
        if position >= end:
            return int64(-1 - fault.ENDS_EARLY), depth
        byte = int64(data[position])
        if byte == COMMA:
            break
        if byte != levels[first + depth - 1] + 2:
            return int64(-1 - fault.UNEXPECTED), depth
        depth -= 1
        position += 1
    return position, depth


@helper
def _is_empty(data: BytesIn, position: int, end: int) -> bool:
    inner = behind_space(data, position + 1, end)
    return inner < end and data[inner] == data[position] + 2


@helper
def _next_value(data: BytesIn, position: int, end: int, level: int) -> int:
    return _behind_name(data, position, end) if level == OPEN else position


@helper
def _behind_name(data: BytesIn, position: int, end: int) -> int:
    """Return where the value of a field begins, or -1 less the number of a fault."""
    position = behind_space(data, position, end)
    if position >= end:
        return int64(-1 - fault.ENDS_EARLY)
    if data[position] != QUOTE:
        return int64(-1 - fault.UNEXPECTED)
    last, why = string_end(data, position + 1, end)
    if last < 0:
        return -1 - why
    return behind_colon(data, last + 1, end)


@helper
def behind_colon(data: BytesIn, position: int, end: int) -> int:
    position = behind_space(data, position, end)
    if position >= end:
        return int64(-1 - fault.ENDS_EARLY)
    return position + 1 if data[position] == COLON else int64(-1 - fault.UNEXPECTED)


@helper
def _hex(data: BytesIn, position: int, end: int) -> int:
    """Return the number of four hexadecimal digits, or -1."""
    if position + 4 > end:
        return int64(-1)
    number = int64(0)
    for index in range(position, position + 4):
        digit = int64(data[index])
        if is_digit(digit):
            digit -= ZERO
        elif ord("a") <= digit | 0x20 <= ord("f"):
            digit = (digit | 0x20) - ord("a") + 10
        else:
            return int64(-1)
        number = number << 4 | digit
    return number


@helper
def _short_escape(byte: int) -> int:
    """Return the character that a letter behind a backslash stands for, or -1."""
    if byte == QUOTE or byte == BACKSLASH or byte == ord("/"):  # noqa: PLR1714, SIM109
        return int64(byte)
    if byte == ord("n"):
        return int64(10)
    if byte == ord("t"):
        return int64(9)
    if byte == ord("r"):
        return int64(13)
    if byte == ord("b"):
        return int64(8)
    return int64(12) if byte == ord("f") else int64(-1)


@helper
def _write_character(out: BytesOut, at: int, code: int) -> int:
    """Write a character as UTF-8; returns the position behind it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 0x3F
        out[at + 2] = 0x80 | code & 0x3F
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 0x3F
    out[at + 2] = 0x80 | code >> 6 & 0x3F
    out[at + 3] = 0x80 | code & 0x3F
    return at + 4


@kernel
def unescape(data: BytesIn, position: int, end: int, out: BytesOut, at: int) -> int:
    """Write a string without its escapes; returns the position behind it, or -1."""
    while position < end:
        byte = int64(data[position])
        if byte != BACKSLASH:
            out[at] = byte
            at += 1
            position += 1
            continue
        byte = int64(data[position + 1])
        position += 2
        code = _short_escape(byte)
        if byte == ord("u"):
            code = _hex(data, position, end)
            position += 4
            if 0xDC00 <= code <= 0xDFFF:
                return int64(-1)
            if 0xD800 <= code <= 0xDBFF:
                follows = position + 6 <= end and data[position] == BACKSLASH
                low = _hex(data, position + 2, end) if follows else int64(-1)
                if not 0xDC00 <= low <= 0xDFFF or data[position + 1] != ord("u"):
                    return int64(-1)
                code = 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF)
                position += 6
        if code < 0:
            return int64(-1)
        at = _write_character(out, at, code)
    return at
