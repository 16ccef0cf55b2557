"""Copying fields out of a buffer, one behind the other, as columns hold them."""

from __future__ import annotations

from penstock.records.kernels.arguments import BytesIn, BytesOut, NumbersIn, int64
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import copy_bytes


@kernel
def copy_fields(data: BytesIn, starts: NumbersIn, sizes: NumbersIn, out: BytesOut) -> int:
    """Copy the bytes at these places, those of a size below 0 left out; returns how many."""
    position = int64(0)
    for index in range(len(starts)):
        size = sizes[index]
        if size > 0:
            copy_bytes(out, position, data, starts[index], size)
            position += size
    return position
