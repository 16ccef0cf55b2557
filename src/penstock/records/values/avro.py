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
def _number(data: BytesIn, end: int, now: NumbersOut) -> int:
    """Read a number of up to 64 bits."""
    number, position = read_zigzag(data, now[POSITION], end)
    if position < 0:
        too_long = end - now[POSITION] >= 10
        now[WRONG] = fault.OUT_OF_RANGE if too_long else fault.ENDS_EARLY
    else:
        now[POSITION] = position
    return number


@helper
def _take(size: int, end: int, now: NumbersOut) -> int:
    """Go behind so many bytes; returns where they begin."""
    start = now[POSITION]
    if size < 0:
        now[WRONG] = fault.NEGATIVE_SIZE
    elif size > end - start:
        now[WRONG] = fault.ENDS_EARLY
    else:
        now[POSITION] = start + size
    return start


@helper
def _whole(data: BytesIn, end: int, bits: int, now: NumbersOut) -> int:
    number = _number(data, end, now)
    if bits == 32 and (number < -_HALF_SIGN or number >= _HALF_SIGN):
        now[WRONG] = fault.OUT_OF_RANGE
    return number


@helper
def _flag(data: BytesIn, end: int, now: NumbersOut) -> int:
    start = _take(1, end, now)
    number = int64(data[start]) if now[WRONG] == fault.NONE else int64(0)
    if number > 1:
        now[WRONG] = fault.UNEXPECTED
    return number


@helper
def _real(data: BytesIn, size: int, end: int, now: NumbersOut) -> int:
    start = _take(size, end, now)
    if now[WRONG] != fault.NONE:
        return int64(0)
    return int64(load_word(data, start)) if size == 8 else _widened(load_half(data, start))


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
def _span(data: BytesIn, op: int, fixed: int, end: int, now: NumbersOut) -> int:
    size = fixed if op == avro_op.FIXED else _number(data, end, now)
    if now[WRONG] != fault.NONE:
        return int64(0)
    start = _take(size, end, now)
    if now[WRONG] == fault.NONE and op == avro_op.TEXT and not is_text(data, start, size):
        now[WRONG] = fault.NOT_TEXT
    return start << node.OFFSET | size


@helper
def _index(data: BytesIn, end: int, below: int, now: NumbersOut) -> int:
    number = _number(data, end, now)
    if number < 0 or number >= below:
        now[WRONG] = fault.NO_BRANCH if now[WRONG] == fault.NONE else now[WRONG]
        return int64(0)
    return number


@kernel
def read_cell(data: BytesIn, end: int, op: int, more: int, now: NumbersOut) -> int:
    """Read what is no struct, array, map or union."""
    if op == avro_op.WHOLE:
        return _whole(data, end, more, now)
    if op == avro_op.WORD or op == avro_op.HALF:  # noqa: PLR1714  # numba builds no tuple
        return _real(data, 8 if op == avro_op.WORD else 4, end, now)
    if op == avro_op.FLAG:
        return _flag(data, end, now)
    if op == avro_op.ENUM:
        return _index(data, end, more, now)
    return _span(data, op, more, end, now)


@helper
def _next_item(data: BytesIn, end: int, now: NumbersOut) -> bool:
    """Whether an array or a map goes on; begins its next block where it needs to."""
    at = STACK + now[DEPTH] - 1
    if now[at] == 0:
        count = _number(data, end, now)
        if count < 0 and now[WRONG] == fault.NONE:
            # The bytes of the block come first, for those who pass over it.
            count = -count
            _number(data, end, now)
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
    now[STEP] = step + 1
    if op == avro_op.UNION:
        chosen = _index(data, end, steps[avro_op.MORE, step], now)
        now[STEP] = steps[avro_op.TARGET, step + 1 + chosen]
    elif op == avro_op.REFUSE:
        now[WRONG] = fault.WRONG_TYPE
    elif op == avro_op.JUMP:
        now[STEP] = steps[avro_op.TARGET, step]
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
        start = spans[0, record]
        end = start + spans[1, record]
        now[STEP] = 0
        now[POSITION] = start
        now[DEPTH] = 0
        now[WRONG] = fault.NONE
        now[LEFT] = end - start
        last = int64(0)
        while now[WRONG] == fault.NONE and steps[avro_op.OP, now[STEP]] != avro_op.DONE:
            last = now[STEP]
            op = steps[avro_op.OP, last]
            if _is_cell(op):
                cell = read_cell(data, end, op, steps[avro_op.MORE, last], now)
                place = steps[avro_op.NODE, last]
                if place >= 0 and now[WRONG] == fault.NONE:
                    push(columns, cells, valid, place, cell)
                now[STEP] = last + 1
            else:
                _structure(data, end, steps, nodes, columns, cells, valid, now)
        if now[WRONG] == fault.NONE and now[POSITION] != end:
            now[WRONG] = fault.BYTES_LEFT
        if now[WRONG] != fault.NONE:
            take_back(columns)
            faults[0, record] = now[WRONG]
            faults[1, record] = now[POSITION] - start
            is_behind = now[WRONG] == fault.BYTES_LEFT
            faults[2, record] = int64(-1) if is_behind else steps[avro_op.NODE, last]
