"""Values in Confluent's wire format: a zero byte, the id of their schema, and what it describes."""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, NumbersOut, TableIn, TableOut, int64
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import load_big

HEADER: Final = 5
"""Bytes of the zero and of the id."""


@kernel
def read_ids(data: BytesIn, spans: TableIn, ids: NumbersOut, behind: TableOut) -> None:
    """Read the id of each value, -1 where it is not in the format, and say what is behind it."""
    for index in range(spans.shape[1]):
        start, size = spans[0, index], spans[1, index]
        is_framed = size >= HEADER and data[start] == 0
        ids[index] = load_big(data, start + 1, HEADER - 1) if is_framed else int64(-1)
        behind[0, index] = start + HEADER
        behind[1, index] = size - HEADER
