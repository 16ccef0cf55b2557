"""CRC-32 as zlib has it (IEEE 802.3, reflected), eight bytes a step."""

from __future__ import annotations

import numpy as np

from penstock.records.columns import Numbers
from penstock.records.kernels.arguments import BytesIn, int64, uint64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_word

_POLYNOMIAL = 0xEDB88320
_ALL = 0xFFFFFFFF


def _tables() -> Numbers:
    """Return what a byte becomes when it is followed by 0 to 7 more, one table behind the other."""
    first = np.arange(256, dtype=np.int64)
    for _ in range(8):
        first = (first >> 1) ^ (_POLYNOMIAL * (first & 1))
    tables = [first]
    for _ in range(7):
        tables.append((tables[-1] >> 8) ^ first[tables[-1] & 0xFF])
    return np.concatenate(tables)


_TABLES = _tables()


@helper
def _step(crc: int, word: int) -> int:
    mixed = word ^ uint64(crc)
    summed = int64(0)
    for index in range(8):
        byte = int64((mixed >> uint64(8 * index)) & uint64(0xFF))
        summed ^= _TABLES[(7 - index) * 256 + byte]
    return summed


@helper
def crc32(data: BytesIn, start: int, size: int) -> int:
    """Return the CRC-32 of these bytes."""
    crc = int64(_ALL)
    end = start + size
    position = start
    while position + 8 <= end:
        crc = _step(crc, load_word(data, position))
        position += 8
    while position < end:
        crc = (crc >> 8) ^ _TABLES[(crc ^ int64(data[position])) & 0xFF]
        position += 1
    return crc ^ _ALL
