"""Values of Avro (its binary encoding, 1.12) read into columns, one a record.

What a schema says is done in steps (`avro_op`), so one kernel reads all schemas. An array may not
have more elements than its record has bytes, whatever they are: those without any bytes would
otherwise cost time and memory that nobody has paid for.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import (
    BytesIn,
    MaskOut,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import (
    is_text,
    load_half,
    load_word,
    read_zigzag,
)
from penstock.records.values import avro_op, fault, node
from penstock.records.values.cells import keep_counts, push, push_null, take_back

STEP: Final = 0
POSITION: Final = 1
DEPTH: Final = 2
WRONG: Final = 3
LEFT: Final = 4
"""The elements that the record may still have."""
STACK: Final = 5
"""Here begin the numbers of elements that are left in the blocks that are open."""
LEVELS: Final = 64
STATES: Final = STACK + LEVELS

_HALF_SIGN: Final = 1 << 31


@helper
def _number(data: BytesIn, position: int, end: int) -> tuple[int, int, int]:
    """Read a number of up to 64 bits; see `_cell`."""
    if position < end and data[position] < 0x80:
        byte = int64(data[position])
        return (byte >> 1) ^ -(byte & 1), position + 1, int64(fault.NONE)
    number, behind = read_zigzag(data, position, end)
    if behind >= 0:
        return number, behind, int64(fault.NONE)
    too_long = end - position >= 10
    return int64(0), position, int64(fault.OUT_OF_RANGE if too_long else fault.ENDS_EARLY)


@helper
def _whole(data: BytesIn, position: int, end: int, bits: int) -> tuple[int, int, int]:
    number, position, wrong = _number(data, position, end)
    if bits == 32 and (number < -_HALF_SIGN or number >= _HALF_SIGN):
        wrong = int64(fault.OUT_OF_RANGE)
    return number, position, wrong


@helper
def _flag(data: BytesIn, position: int, end: int) -> tuple[int, int, int]:
    if position >= end:
        return int64(0), position, int64(fault.ENDS_EARLY)
    number = int64(data[position])
    return number, position + 1, int64(fault.UNEXPECTED if number > 1 else fault.NONE)


@helper
def _real(data: BytesIn, position: int, end: int, size: int) -> tuple[int, int, int]:
    if size > end - position:
        return int64(0), position, int64(fault.ENDS_EARLY)
    if size == 8:
        return int64(load_word(data, position)), position + size, int64(fault.NONE)
    return _widened(load_half(data, position)), position + size, int64(fault.NONE)


@helper
def _widened(bits: int) -> int:
    """Return the bits of a number of 32 bits as one of 64 (IEEE 754, binary32 and binary64)."""
    exponent = (bits >> 23) & 0xFF
    fraction = bits & 0x7FFFFF
    if exponent == 0xFF:
        exponent = int64(0x7FF)
    elif exponent:
        exponent += 1023 - 127
    elif fraction:
        exponent = int64(1023 - 126)
        while fraction & 0x800000 == 0:
            fraction <<= 1
            exponent -= 1
        fraction &= 0x7FFFFF
    return (bits >> 31) << 63 | exponent << 52 | fraction << 29


@helper
def _span(data: BytesIn, position: int, end: int, op: int, fixed: int) -> tuple[int, int, int]:
    size = int64(fixed)
    wrong = int64(fault.NONE)
    if op != avro_op.FIXED:
        size, position, wrong = _number(data, position, end)
    if wrong != fault.NONE:
        return int64(0), position, wrong
    if size < 0:
        return int64(0), position, int64(fault.NEGATIVE_SIZE)
    if size > end - position:
        return int64(0), position, int64(fault.ENDS_EARLY)
    if op == avro_op.TEXT and not is_text(data, position, size):
        wrong = int64(fault.NOT_TEXT)
    return position << node.OFFSET | size, position + size, wrong


@helper
def _index(data: BytesIn, position: int, end: int, below: int) -> tuple[int, int, int]:
    number, position, wrong = _number(data, position, end)
    if number < 0 or number >= below:
        return int64(0), position, int64(fault.NO_BRANCH) if wrong == fault.NONE else wrong
    return number, position, wrong


@helper
def _cell(data: BytesIn, position: int, end: int, op: int, more: int) -> tuple[int, int, int]:
    """Read what is no struct, array, map or union.

    Returns the cell, the position behind what was read, and what is wrong with it.
    """
    if op == avro_op.TEXT or op == avro_op.BYTES or op == avro_op.FIXED:  # noqa: PLR1714  # numba builds no tuple
        return _span(data, position, end, op, more)
    if op == avro_op.WHOLE:
        return _whole(data, position, end, more)
    if op == avro_op.FLAG:
        return _flag(data, position, end)
    if op == avro_op.ENUM:
        return _index(data, position, end, more)
    return _real(data, position, end, 8 if op == avro_op.WORD else 4)


@helper
def _read(data: BytesIn, end: int, now: NumbersOut) -> int:
    """Read a number where a step of `_structure` is."""
    number, now[POSITION], now[WRONG] = _number(data, now[POSITION], end)
    return number


@helper
def _next_item(data: BytesIn, end: int, now: NumbersOut) -> bool:
    """Whether an array or a map goes on; begins its next block where it needs to."""
    at = STACK + now[DEPTH] - 1
    if now[at] == 0:
        count = _read(data, end, now)
        if count < 0 and now[WRONG] == fault.NONE:
            # The bytes of the block come first, for those who pass over it.
            count = -count
            _read(data, end, now)
        if now[WRONG] != fault.NONE or count == 0:
            return False
        if count < 0 or count > now[LEFT]:
            now[WRONG] = fault.TOO_MANY
            return False
        now[LEFT] -= count
        now[at] = count
    now[at] -= 1
    return True


@helper
def _structure(
    data: BytesIn, end: int, steps: TableIn, nodes: TableIn, columns: TableOut, cells: NumbersOut,
    valid: MaskOut, now: NumbersOut,
) -> None:  # fmt: skip
    """Take a step of an array, a map or a union, or one that reads nothing."""
    step = now[STEP]
    op = steps[avro_op.OP, step]
    place = steps[avro_op.NODE, step]
    now[STEP] = steps[avro_op.NEXT, step]
    if op == avro_op.UNION:
        below = steps[avro_op.MORE, step]
        chosen, now[POSITION], now[WRONG] = _index(data, now[POSITION], end, below)
        now[STEP] = steps[avro_op.TARGET, step + 1 + chosen]
    elif op == avro_op.REFUSE:
        now[WRONG] = fault.WRONG_TYPE
    elif op == avro_op.OPEN:
        now[STACK + now[DEPTH]] = 0
        now[DEPTH] += 1
    elif op == avro_op.ITEM:
        if not _next_item(data, end, now):
            now[DEPTH] -= 1
            now[STEP] = steps[avro_op.TARGET, step]
            if place >= 0:
                push(columns, cells, valid, place, columns[node.COUNT, place + 1])
    elif place >= 0:
        if op == avro_op.NULL:
            push_null(nodes, columns, cells, valid, place)
        else:
            push(columns, cells, valid, place, int64(0))


@helper
def _is_cell(op: int) -> bool:
    return avro_op.FLAG <= op <= avro_op.ENUM


@kernel
def read_avro(
    data: BytesIn, spans: TableIn, steps: TableIn, nodes: TableIn, columns: TableOut,
    cells: NumbersOut, valid: MaskOut, now: NumbersOut, faults: TableOut,
) -> None:  # fmt: skip
    """Add each record to the columns, but for those with a fault.

    A fault is its number, the byte of the record and the node that it was met at, or -1.
    """
    for record in range(spans.shape[1]):
        keep_counts(columns)
        position = spans[0, record]
        end = position + spans[1, record]
        step = steps[avro_op.NEXT, steps.shape[1] - 1]
        wrong = int64(fault.NONE)
        now[DEPTH] = 0
        now[WRONG] = fault.NONE
        now[LEFT] = end - position
        last = int64(0)
        while wrong == fault.NONE and steps[avro_op.OP, step] != avro_op.DONE:
            last = step
            op = steps[avro_op.OP, step]
            if avro_op.FLAG <= op <= avro_op.ENUM:
                cell, position, wrong = _cell(data, position, end, op, steps[avro_op.MORE, step])
                place = steps[avro_op.NODE, step]
                if place >= 0 and wrong == fault.NONE:
                    push(columns, cells, valid, place, cell)
                step = steps[avro_op.NEXT, step]
            else:
                now[STEP] = step
                now[POSITION] = position
                _structure(data, end, steps, nodes, columns, cells, valid, now)
                step = now[STEP]
                position = now[POSITION]
                wrong = now[WRONG]
        if wrong == fault.NONE and position != end:
            wrong = int64(fault.BYTES_LEFT)
        if wrong != fault.NONE:
            take_back(columns)
            faults[0, record] = wrong
            faults[1, record] = position - spans[0, record]
            faults[2, record] = steps[avro_op.NODE, last]
            if wrong == fault.BYTES_LEFT:
                faults[2, record] = int64(-1)
