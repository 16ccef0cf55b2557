"""XXH3-64 with seed 0, which Iggy's frames and batches carry (xxhash's format specification, v0.8).

Every function takes a buffer and a range that lies in it. Numbers are unsigned 64-bit words.
"""

from __future__ import annotations

import numpy as np

from penstock.records.kernels.arguments import BytesIn, Word, uint64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import load_half, load_word
from penstock.records.kernels.xxh3_lanes import SECRET_BYTES, sum_lanes

SECRET = np.frombuffer(SECRET_BYTES, np.uint8)

_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME64_2 = 0xC2B2AE3D27D4EB4F
_PRIME64_3 = 0x165667B19E3779F9
_MIX_1 = 0x165667919E3779F9
_MIX_2 = 0x9FB21C651E98DF25


@helper
def _secret(position: int) -> int:
    return load_word(SECRET, position)


@helper
def _rotate(word: int, bits: int) -> int:
    return (word << uint64(bits)) | (word >> uint64(64 - bits))


@helper
def _swap(word: int) -> int:
    swapped = uint64(0)
    for index in range(8):
        swapped = (swapped << uint64(8)) | ((word >> uint64(8 * index)) & uint64(0xFF))
    return swapped


def fold(left: int, right: int) -> int:
    """Return the two halves of the 128-bit product, combined. The compiler has its own code."""
    product = int(left) * int(right)
    return uint64((product >> 64) ^ (product & 0xFFFFFFFFFFFFFFFF))


@helper
def _avalanche(word: int) -> int:
    word ^= word >> uint64(37)
    word *= uint64(_MIX_1)
    return word ^ (word >> uint64(32))


@helper
def _avalanche_short(word: int) -> int:
    word ^= word >> uint64(33)
    word *= uint64(_PRIME64_2)
    word ^= word >> uint64(29)
    word *= uint64(_PRIME64_3)
    return word ^ (word >> uint64(32))


@helper
def _to_3(data: BytesIn, start: int, size: int) -> int:
    first = uint64(data[start])
    middle = uint64(data[start + (size >> 1)])
    last = uint64(data[start + size - 1])
    combined = (first << uint64(16)) | (middle << uint64(24)) | last | uint64(size << 8)
    flip = (_secret(0) ^ (_secret(0) >> uint64(32))) & uint64(0xFFFFFFFF)
    return _avalanche_short(combined ^ flip)


@helper
def _to_8(data: BytesIn, start: int, size: int) -> int:
    first = uint64(load_half(data, start))
    last = uint64(load_half(data, start + size - 4))
    word = (last + (first << uint64(32))) ^ (_secret(8) ^ _secret(16))
    word ^= _rotate(word, 49) ^ _rotate(word, 24)
    word *= uint64(_MIX_2)
    word ^= (word >> uint64(35)) + uint64(size)
    word *= uint64(_MIX_2)
    return word ^ (word >> uint64(28))


@helper
def _to_16(data: BytesIn, start: int, size: int) -> int:
    low = load_word(data, start) ^ (_secret(24) ^ _secret(32))
    high = load_word(data, start + size - 8) ^ (_secret(40) ^ _secret(48))
    return _avalanche(uint64(size) + _swap(low) + high + fold(low, high))


@helper
def _mix(data: BytesIn, position: int, secret: int) -> int:
    left = load_word(data, position) ^ _secret(secret)
    return fold(left, load_word(data, position + 8) ^ _secret(secret + 8))


@helper
def _to_128(data: BytesIn, start: int, size: int) -> int:
    total = uint64(size) * uint64(_PRIME64_1)
    for index in range((size - 1) // 32 + 1):
        total += _mix(data, start + 16 * index, 32 * index)
        total += _mix(data, start + size - 16 * (index + 1), 32 * index + 16)
    return _avalanche(total)


@helper
def _to_240(data: BytesIn, start: int, size: int) -> int:
    total = uint64(size) * uint64(_PRIME64_1)
    for index in range(8):
        total += _mix(data, start + 16 * index, 16 * index)
    total = _avalanche(total)
    for index in range(8, size // 16):
        total += _mix(data, start + 16 * index, 16 * (index - 8) + 3)
    total += _mix(data, start + size - 16, 136 - 17)
    return _avalanche(total)


@helper
def _long(data: BytesIn, start: int, size: int) -> int:
    lanes = sum_lanes(data, start, size)
    total = uint64(size) * uint64(_PRIME64_1)
    for pair in range(len(lanes) // 2):
        left = lanes[2 * pair] ^ _secret(11 + 16 * pair)
        total += fold(left, lanes[2 * pair + 1] ^ _secret(11 + 16 * pair + 8))
    return _avalanche(total)


@helper
def _short(data: BytesIn, start: int, size: int) -> int:
    if size > 8:
        return _to_16(data, start, size)
    if size > 3:
        return _to_8(data, start, size)
    if size > 0:
        return _to_3(data, start, size)
    return _avalanche_short(_secret(56) ^ _secret(64))


@kernel
def xxh3_64(data: BytesIn, start: int, size: int) -> Word:
    """Return the XXH3-64 of a range that lies in `data`."""
    if size > 240:
        return _long(data, start, size)
    if size > 128:
        return _to_240(data, start, size)
    if size > 16:
        return _to_128(data, start, size)
    return _short(data, start, size)
