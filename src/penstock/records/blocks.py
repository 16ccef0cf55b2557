"""What the blocks of compressed frames inflate to at most, by their headers alone.

A frame may have a block in every three bytes, too many to be walked in Python on the event loop.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_big, read_varint

UNKNOWN: Final = -1
"""The frame makes no sense, or has more blocks than are walked."""

BLOCKS_WALKED: Final = 1 << 16
"""Who writes smaller blocks than two KiB gets the largest bound."""

_SIZE_BYTES: Final = 5

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_BLOCK_BYTES: Final = 128 << 10
_ZSTD_RUN: Final = 1
_ZSTD_COMPRESSED: Final = 2

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_RATIO: Final = 255
_LZ4_STORED: Final = 1 << 31


@helper
def _little(data: BytesIn, position: int, size: int) -> int:
    number = int64(0)
    for index in range(size):
        number |= int64(data[position + index]) << (8 * index)
    return number


@kernel
def walk_zstd(data: BytesIn) -> int:
    """Return what frames of zstd (RFC 8878), one behind the other, inflate to, or UNKNOWN."""
    position, total, left = int64(0), int64(0), int64(BLOCKS_WALKED)
    while position < len(data):
        if len(data) - position < 5 or _little(data, position, 4) != _ZSTD_MAGIC:
            return UNKNOWN
        size, position, left = _walk_zstd_frame(data, position + 4, left)
        if position == MALFORMED:
            return UNKNOWN
        total += size
    return total


@helper
def _walk_zstd_frame(data: BytesIn, position: int, left: int) -> tuple[int, int, int]:
    """Return what a frame inflates to at most, the position behind it, and what is left to walk."""
    descriptor = int64(data[position])
    is_single = descriptor >> 5 & 1
    content_flag, dictionary = descriptor >> 6, descriptor & 3
    content_size = is_single if content_flag == 0 else int64(1) << content_flag
    position += 2 - is_single + (dictionary if dictionary < 3 else int64(4))
    if content_size > len(data) - position:
        return int64(0), int64(MALFORMED), left
    stated = _little(data, position, content_size) + (256 if content_size == 2 else 0)
    position += content_size
    total = int64(0)
    while left > 0 and len(data) - position >= 3:
        left -= 1
        header = _little(data, position, 3)
        kind, size = header >> 1 & 3, header >> 3
        total += size if kind < _ZSTD_COMPRESSED else int64(_ZSTD_BLOCK_BYTES)
        position += 3 + (int64(1) if kind == _ZSTD_RUN else size)
        if header & 1:
            if position > len(data):
                break
            # As a signed number the largest of those that are stated are below zero.
            if content_size and 0 <= stated < total:
                total = stated
            return total, position + 4 * (descriptor >> 2 & 1), left
    return int64(0), int64(MALFORMED), left


@kernel
def walk_lz4(data: BytesIn) -> int:
    """Return what a frame of lz4 inflates to at most, or UNKNOWN."""
    if len(data) < 6 or _little(data, 0, 4) != _LZ4_MAGIC:
        return UNKNOWN
    flags, descriptor = int64(data[4]), int64(data[5])
    largest = int64(1) << (8 + 2 * (descriptor >> 4 & 7))
    position = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    total = int64(0)
    for _ in range(BLOCKS_WALKED):
        if len(data) - position < 4:
            return UNKNOWN
        size = _little(data, position, 4)
        if size == 0:
            return total
        stored = size & (_LZ4_STORED - 1)
        total += stored if size & _LZ4_STORED else min(largest, _LZ4_RATIO * stored)
        position += 4 + stored + 4 * (flags >> 4 & 1)
    return UNKNOWN


@kernel
def walk_xerial(data: BytesIn) -> int:
    """Return what snappy in Java's framing, without its header, inflates to, or UNKNOWN."""
    position, total = int64(0), int64(0)
    for _ in range(BLOCKS_WALKED):
        if position >= len(data):
            return total
        if len(data) - position < 4:
            return UNKNOWN
        following = position + 4 + load_big(data, position, 4)
        start = position + 4
        size, start = read_varint(data, start, min(len(data), start + _SIZE_BYTES))
        if start == MALFORMED:
            return UNKNOWN
        total += size
        position = following
    return UNKNOWN
