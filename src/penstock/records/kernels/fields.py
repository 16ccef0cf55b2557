"""Fields of a buffer one behind the other, as columns hold them.

Where each ends is written in 4 bytes, as Arrow counts them; the first is 0, and not written here.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, BytesOut, MaskIn, NumbersIn, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_word, store_half, store_word

SPARE: Final = 8
"""Bytes behind the fields that are copied, which may be written to."""
SIZE_BITS: Final = 32
"""A span is one number: where it starts, shifted by so many bits, and its size."""
_SIZE: Final = (1 << SIZE_BITS) - 1


@helper
def _copy(data: BytesIn, start: int, size: int, out: BytesOut, position: int) -> None:
    if size <= SPARE and start + SPARE <= len(data):
        store_word(out, position, load_word(data, start))
    else:
        copy_bytes(out, position, data, start, size)


@kernel
def lay_out(sizes: NumbersIn, ends: BytesOut) -> int:
    """Write where fields of these sizes end, one below 0 being empty; returns where the last does.

    What is written is right where that is below 2**31.
    """
    end = int64(0)
    for index in range(len(sizes)):
        size = sizes[index]
        end += size if size > 0 else int64(0)
        store_half(ends, 4 * index, end)
    return end


@kernel
def copy_fields(data: BytesIn, starts: NumbersIn, sizes: NumbersIn, out: BytesOut) -> int:
    """Copy the bytes at these places, those of a size below 0 left out; returns how many.

    `out` has SPARE bytes more than they are.
    """
    position = int64(0)
    for index in range(len(starts)):
        size = sizes[index]
        if size > 0:
            _copy(data, starts[index], size, out, position)
            position += size
    return position


@kernel
def lay_out_spans(spans: NumbersIn, valid: MaskIn, ends: BytesOut) -> int:
    """Write where these spans end, as `lay_out` does; one that is not valid is empty."""
    end = int64(0)
    for index in range(len(spans)):
        end += spans[index] & _SIZE if valid[index] else int64(0)
        store_half(ends, 4 * index, end)
    return end


@kernel
def copy_spans(data: BytesIn, spans: NumbersIn, valid: MaskIn, out: BytesOut) -> int:
    """Copy the bytes of the spans that are valid, as `copy_fields` does; returns how many."""
    position = int64(0)
    for index in range(len(spans)):
        size = spans[index] & _SIZE
        if valid[index] and size > 0:
            _copy(data, spans[index] >> SIZE_BITS, size, out, position)
            position += size
    return position
