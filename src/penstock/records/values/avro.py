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
    uint64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import (
    is_text,
    load_half,
    load_word,
    read_zigzag,
)
from penstock.records.values import avro_op, fault, node
from penstock.records.values.cells import push, push_null, push_struct, take_back

DEPTH: Final = 0
"""How many arrays and maps are open."""
LEFT: Final = 1
"""The elements that the record may still have."""
STACK: Final = 2
"""Here begin the numbers of elements that are left in the blocks that are open."""
LEVELS: Final = 64
STATES: Final = STACK + LEVELS

_HALF_SIGN: Final = 1 << 31


@helper
def _number(data: BytesIn, position: int, end: int) -> tuple[int, int, int]:
    """Read a number of up to 64 bits; see `_cell`."""
    if position < end and data[uint64(position)] < 0x80:
        byte = int64(data[uint64(position)])
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
    number = int64(data[uint64(position)])
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
def _next_item(data: BytesIn, position: int, end: int, left: NumbersOut) -> tuple[bool, int, int]:
    """Whether an array or a map goes on; begins its next block where it needs to.

    Returns that, the position behind what was read, and what is wrong with it.
    """
    at = uint64(STACK + left[DEPTH] - 1)
    if left[at] == 0:
        count, position, wrong = _number(data, position, end)
        if count < 0 and wrong == fault.NONE:
            # The bytes of the block come first, for those who pass over it.
            count = -count
            _, position, wrong = _number(data, position, end)
        if wrong != fault.NONE or count == 0:
            return False, position, wrong
        if count < 0 or count > left[LEFT]:
            return False, position, int64(fault.TOO_MANY)
        left[LEFT] -= count
        left[at] = count
    left[at] -= 1
    return True, position, int64(fault.NONE)


@helper
def _structure(
    data: BytesIn, position: int, end: int, steps: TableIn, step: int, nodes: TableIn,
    columns: TableOut, cells: NumbersOut, valid: MaskOut, left: NumbersOut,
) -> tuple[int, int, int]:  # fmt: skip
    """Take a step of an array, a map or a union, or one that reads nothing.

    Returns the next step, the position behind what was read, and what is wrong with it.
    """
    op = steps[avro_op.OP, step]
    place = steps[avro_op.NODE, step]
    behind = steps[avro_op.NEXT, step]
    wrong = int64(fault.NONE)
    if op == avro_op.UNION:
        chosen, position, wrong = _index(data, position, end, steps[avro_op.MORE, step])
        behind = steps[avro_op.TARGET, step + uint64(1 + chosen)]
    elif op == avro_op.ITEM:
        goes_on, position, wrong = _next_item(data, position, end, left)
        if not goes_on:
            left[DEPTH] -= 1
            behind = steps[avro_op.TARGET, step]
            if place >= 0:
                push(columns, cells, valid, place, columns[node.COUNT, uint64(place + 1)])
    elif op == avro_op.OPEN:
        left[uint64(STACK + left[DEPTH])] = 0
        left[DEPTH] += 1
    elif op == avro_op.REFUSE:
        wrong = int64(fault.WRONG_TYPE)
    elif place >= 0:
        if op == avro_op.NULL:
            push_null(nodes, columns, cells, valid, place)
        else:
            push_struct(columns, valid, place)
    return behind, position, wrong


@kernel
def read_avro(
    data: BytesIn, spans: TableIn, steps: TableIn, nodes: TableIn, columns: TableOut,
    cells: NumbersOut, valid: MaskOut, left: NumbersOut, faults: TableOut,
) -> None:  # fmt: skip
    """Add each record to the columns, but for those with a fault.

    A fault is its number, the byte of the record and the node that it was met at, or -1. `left` has
    room for STATES numbers.
    """
    records = int64(0)
    for record in range(spans.shape[1]):
        position = spans[0, record]
        end = position + spans[1, record]
        step = uint64(steps[avro_op.NEXT, steps.shape[1] - 1])
        last = step
        wrong = int64(fault.NONE)
        left[DEPTH] = 0
        left[LEFT] = end - position
        while wrong == fault.NONE and steps[avro_op.OP, step] != avro_op.DONE:
            last = step
            op = steps[avro_op.OP, step]
            if avro_op.FLAG <= op <= avro_op.ENUM:
                cell, position, wrong = _cell(data, position, end, op, steps[avro_op.MORE, step])
                place = steps[avro_op.NODE, step]
                if place >= 0 and wrong == fault.NONE:
                    push(columns, cells, valid, place, cell)
                step = uint64(steps[avro_op.NEXT, step])
            else:
                behind, position, wrong = _structure(
                    data, position, end, steps, step, nodes, columns, cells, valid, left
                )
                step = uint64(behind)
        if wrong == fault.NONE and position != end:
            wrong = int64(fault.BYTES_LEFT)
        if wrong == fault.NONE:
            records += 1
        else:
            take_back(nodes, columns, cells, records)
            faults[0, record] = wrong
            faults[1, record] = position - spans[0, record]
            faults[2, record] = steps[avro_op.NODE, last]
            if wrong == fault.BYTES_LEFT:
                faults[2, record] = int64(-1)
