"""JSON (RFC 8259) read into columns, one value a record.

Fields are found by their names, those that are not asked for are passed over, and those that are
not there are null. Nothing is converted: a number in quotes is no number. What is not JSON, or not
of the type of its column, costs its own record only.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskOut,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import is_text, same_spans
from penstock.records.values import fault, node
from penstock.records.values.cells import push, push_null, push_struct, take_back
from penstock.records.values.json_words import (
    CLOSE,
    CLOSE_LIST,
    COMMA,
    MINUS,
    OPEN,
    OPEN_LIST,
    QUOTE,
    ZERO,
    behind_colon,
    behind_space,
    is_digit,
    literal_end,
    pass_over,
    plain_end,
    string_end,
    unescape,
)
from penstock.records.values.json_words import DEPTH as PASSED_OVER

STATE: Final = 0
"""What is expected next: a value, or what may stand behind one, and so on."""
POSITION: Final = 1
PLACE: Final = 2
"""The node that a value is for."""
GUESS: Final = 3
"""The field that is most often the next one."""
DEPTH: Final = 4
WRONG: Final = 5
WRITTEN: Final = 6
"""The bytes of strings that had escapes."""
STACK: Final = 7
"""Here begin the structs, lists and maps that are open, and behind them those passed over."""
LEVELS: Final = 64
"""Levels of the shape that values are read into."""
STATES: Final = STACK + LEVELS + PASSED_OVER

_VALUE: Final = 0
_BEHIND: Final = 1
_NAME: Final = 2
_FIRST_NAME: Final = 3
_DONE: Final = 4

_HASH: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_LARGEST: Final = (1 << 63) - 1


@helper
def _hash(data: BytesIn, start: int, size: int) -> int:
    state = int64(_HASH)
    for index in range(start, start + size):
        state = ((state ^ int64(data[index])) * _PRIME) & 0xFFFFFFFF
    return state ^ (state >> 15)


@kernel
def name_hash(data: BytesIn, start: int, size: int) -> int:
    """Return what a field's name is looked up by."""
    return _hash(data, start, size)


@helper
def _has_name(
    data: BytesIn, start: int, size: int, nodes: TableIn, letters: BytesIn, place: int
) -> bool:
    return nodes[node.NAME_SIZE, place] == size and same_spans(
        data, start, letters, nodes[node.NAME_START, place], size
    )


@kernel
def find_field(
    data: BytesIn, start: int, size: int, nodes: TableIn, letters: BytesIn, struct: int
) -> int:
    """Return the field of this name, or -1."""
    last = nodes[node.NAMES_SIZE, struct] - 1
    at = _hash(data, start, size) & last
    first = nodes[node.NAMES, struct]
    while nodes[node.LOOK_UP, first + at] >= 0:
        place = nodes[node.LOOK_UP, first + at]
        if _has_name(data, start, size, nodes, letters, place):
            return place
        at = (at + 1) & last
    return int64(-1)


@helper
def _whole(data: BytesIn, position: int, end: int, bits: int) -> tuple[int, int]:
    """Return a whole number of so many bits, and 0; or anything, and the number of a fault."""
    negative = int64(data[position] == MINUS)
    position += negative
    if end - position > 19:
        return int64(0), int64(fault.OUT_OF_RANGE)
    number = uint64(0)
    for index in range(position, end):
        digit = int64(data[index]) - ZERO
        if digit < 0 or digit > 9:
            return int64(0), int64(fault.WRONG_TYPE)
        number = number * uint64(10) + uint64(digit)
    largest = uint64(_LARGEST >> (64 - bits))
    if number > largest + uint64(negative):
        return int64(0), int64(fault.OUT_OF_RANGE)
    return (-int64(number) if negative else int64(number)), int64(fault.NONE)


@helper
def _other_type(data: BytesIn, position: int, end: int) -> int:
    """Return the fault of what begins here and is not what was expected: JSON, or not even that."""
    byte = data[position]
    begins = byte == QUOTE or byte == OPEN or byte == OPEN_LIST  # noqa: PLR1714
    if begins or plain_end(data, position, end) >= 0:
        return int64(fault.WRONG_TYPE)
    return int64(fault.UNEXPECTED)


@helper
def _close(
    nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut, place: int
) -> None:
    """End a list or a map, or give a struct the fields that it lacks."""
    if nodes[node.KIND, place] != node.STRUCT:
        push(columns, cells, valid, place, columns[node.COUNT, place + 1])
        return
    wanted = columns[node.COUNT, place]
    field = place + 1
    while field < nodes[node.END, place]:
        if columns[node.COUNT, field] < wanted:
            push_null(nodes, columns, cells, valid, field)
        field = nodes[node.END, field]


@helper
def _text(data: BytesIn, end: int, start: int, out: BytesOut, now: NumbersOut) -> int:
    """Return the span of the string whose first character is at `start`, and go on behind it."""
    last, why = string_end(data, start, end)
    if last < 0:
        now[WRONG] = why
        return int64(0)
    now[POSITION] = last + 1
    if not why:
        return start << node.OFFSET | (last - start)
    written = now[WRITTEN]
    behind = unescape(data, start, last, out, written)
    if behind < 0:
        now[WRONG] = fault.BAD_ESCAPE
        return int64(0)
    now[WRITTEN] = behind
    return (len(data) + written) << node.OFFSET | (behind - written)


@helper
def _plain(data: BytesIn, end: int, kind: int, bits: int, now: NumbersOut) -> int:
    """Return the cell of a number, `true` or `false`, and go on behind it."""
    position = now[POSITION]
    last = plain_end(data, position, end)
    if last < 0:
        now[WRONG] = _other_type(data, position, end)
        return int64(0)
    byte = data[position]
    is_number = byte == MINUS or is_digit(byte)
    number = position << node.OFFSET | (last - position)
    if kind == node.FLAG:
        now[WRONG] = fault.WRONG_TYPE if is_number else fault.NONE
        number = int64(byte == ord("t"))
    elif not is_number or kind == node.MOMENT:
        now[WRONG] = fault.WRONG_TYPE
    elif kind == node.WHOLE:
        number, wrong = _whole(data, position, last, bits)
        now[WRONG] = wrong
    now[POSITION] = last
    return number


@helper
def _leaf(
    data: BytesIn, end: int, nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut,
    out: BytesOut, now: NumbersOut,
) -> None:  # fmt: skip
    """Read what is no struct, list or map; a text may be any JSON, and is then as it is written."""
    place = now[PLACE]
    kind = nodes[node.KIND, place]
    position = now[POSITION]
    if data[position] == QUOTE:
        if kind != node.TEXT and kind != node.MOMENT:  # noqa: PLR1714
            now[WRONG] = fault.WRONG_TYPE
            return
        cell = _text(data, end, position + 1, out, now)
    elif kind == node.TEXT:
        last = pass_over(data, position, end, now, STACK + LEVELS)
        cell = position << node.OFFSET | (last - position)
        now[POSITION] = last
        if last < 0:
            now[POSITION] = position
            now[WRONG] = -1 - last
    else:
        cell = _plain(data, end, kind, nodes[node.BITS, place], now)
    if now[WRONG] == fault.NONE:
        push(columns, cells, valid, place, cell)
        now[STATE] = _BEHIND


@helper
def _open(nodes: TableIn, columns: TableOut, valid: MaskOut, now: NumbersOut) -> None:
    """Begin a struct, a list or a map."""
    place = now[PLACE]
    kind = nodes[node.KIND, place]
    if kind == node.STRUCT:
        push_struct(columns, valid, place)
    now[STACK + now[DEPTH]] = place
    now[DEPTH] += 1
    now[POSITION] += 1
    now[GUESS] = place + 1
    now[STATE] = _FIRST_NAME
    if kind == node.LIST:
        now[STATE] = _VALUE
        now[PLACE] = place + 1


@helper
def _value(
    data: BytesIn, end: int, nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut,
    out: BytesOut, now: NumbersOut,
) -> None:  # fmt: skip
    place = now[PLACE]
    position = now[POSITION]
    kind = nodes[node.KIND, place]
    byte = data[position]
    if byte == ord("n"):
        last = literal_end(data, position, end)
        if last < 0:
            now[WRONG] = fault.UNEXPECTED
            return
        push_null(nodes, columns, cells, valid, place)
        now[POSITION] = last
        now[STATE] = _BEHIND
    elif kind > node.MAP:
        _leaf(data, end, nodes, columns, cells, valid, out, now)
    elif byte != (OPEN_LIST if kind == node.LIST else OPEN):
        now[WRONG] = _other_type(data, position, end)
    else:
        _open(nodes, columns, valid, now)
        if kind == node.LIST:
            position = behind_space(data, position + 1, end)
            if position < end and data[position] == CLOSE_LIST:
                now[POSITION] = position
                now[STATE] = _BEHIND


@helper
def _behind(
    data: BytesIn, nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut,
    now: NumbersOut,
) -> None:  # fmt: skip
    """Take what stands behind a value: the next one, or the end of what it is in."""
    if now[DEPTH] == 0:
        now[WRONG] = fault.BYTES_LEFT
        return
    place = now[STACK + now[DEPTH] - 1]
    now[PLACE] = place
    is_list = nodes[node.KIND, place] == node.LIST
    byte = data[now[POSITION]]
    now[POSITION] += 1
    if byte == (CLOSE_LIST if is_list else CLOSE):
        now[DEPTH] -= 1
        now[STATE] = _BEHIND
        now[GUESS] = nodes[node.END, place]
        _close(nodes, columns, cells, valid, place)
    elif byte != COMMA:
        now[POSITION] -= 1
        now[WRONG] = fault.UNEXPECTED
    elif is_list:
        now[STATE] = _VALUE
        now[PLACE] = place + 1
    else:
        now[STATE] = _NAME


@helper
def _is_empty(data: BytesIn, now: NumbersOut) -> bool:
    return now[STATE] == _FIRST_NAME and data[now[POSITION]] == CLOSE


@helper
def _field(
    data: BytesIn, end: int, nodes: TableIn, letters: BytesIn, columns: TableOut,
    cells: NumbersOut, valid: MaskOut, out: BytesOut, now: NumbersOut,
) -> None:  # fmt: skip
    """Take a field's name, and its value too where nobody asks for it."""
    struct = now[STACK + now[DEPTH] - 1]
    now[PLACE] = struct
    if data[now[POSITION]] != QUOTE:
        now[WRONG] = fault.UNEXPECTED
        return
    span = _text(data, end, now[POSITION] + 1, out, now)
    if now[WRONG] != fault.NONE:
        return
    position = behind_colon(data, now[POSITION], end)
    if position < 0:
        now[WRONG] = -1 - position
        return
    now[POSITION] = position
    now[STATE] = _VALUE
    if nodes[node.KIND, struct] == node.MAP:
        push(columns, cells, valid, struct + 1, span)
        now[PLACE] = struct + 2
        return
    start = span >> node.OFFSET
    size = span & 0xFFFFFFFF
    place = now[GUESS]
    if start >= len(data):
        place = find_field(out, start - len(data), size, nodes, letters, struct)
    elif place >= nodes[node.END, struct] or not _has_name(
        data, start, size, nodes, letters, place
    ):
        place = find_field(data, start, size, nodes, letters, struct)
    if place < 0:
        _skip(data, end, now)
    elif columns[node.COUNT, place] >= columns[node.COUNT, struct]:
        now[PLACE] = place
        now[WRONG] = fault.TWICE
    else:
        now[PLACE] = place
        now[GUESS] = nodes[node.END, place]


@helper
def _skip(data: BytesIn, end: int, now: NumbersOut) -> None:
    last = pass_over(data, now[POSITION], end, now, STACK + LEVELS)
    if last < 0:
        now[WRONG] = -1 - last
        return
    now[POSITION] = last
    now[STATE] = _BEHIND


@kernel
def read_json(
    data: BytesIn, spans: TableIn, nodes: TableIn, letters: BytesIn, columns: TableOut,
    cells: NumbersOut, valid: MaskOut, out: BytesOut, now: NumbersOut, faults: TableOut,
) -> int:  # fmt: skip
    """Add each record to the columns, but for those with a fault; returns the bytes of `out`.

    `out` takes what had escapes and is as long as `data`, behind which its spans count. A record's
    fault is its number, the byte of the record and the node that it was met at.
    """
    now[WRITTEN] = 0
    records = int64(0)
    for record in range(spans.shape[1]):
        start = spans[0, record]
        end = start + spans[1, record]
        now[STATE] = _VALUE
        now[POSITION] = start
        now[PLACE] = 0
        now[DEPTH] = 0
        now[WRONG] = fault.NONE if is_text(data, start, end - start) else fault.NOT_TEXT
        while now[WRONG] == fault.NONE and now[STATE] != _DONE:
            now[POSITION] = behind_space(data, now[POSITION], end)
            if now[POSITION] >= end:
                is_whole = now[STATE] == _BEHIND and now[DEPTH] == 0
                now[STATE] = _DONE
                now[WRONG] = fault.NONE if is_whole else fault.ENDS_EARLY
            elif now[STATE] == _VALUE:
                _value(data, end, nodes, columns, cells, valid, out, now)
            elif now[STATE] == _BEHIND or _is_empty(data, now):
                _behind(data, nodes, columns, cells, valid, now)
            else:
                _field(data, end, nodes, letters, columns, cells, valid, out, now)
        if now[WRONG] == fault.NONE:
            records += 1
        else:
            take_back(nodes, columns, cells, records)
            faults[0, record] = now[WRONG]
            faults[1, record] = min(now[POSITION], end) - start
            faults[2, record] = now[PLACE]
    return now[WRITTEN]
