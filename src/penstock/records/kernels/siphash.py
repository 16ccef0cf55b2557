"""SipHash-2-4 with 128 bits of result: nobody who does not know the secret can make two keys alike.

Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), and its reference implementation.
"""

from __future__ import annotations

from penstock.records.kernels.arguments import BytesIn, uint64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_word

_FIRST = 0x736F6D6570736575
_SECOND = 0x646F72616E646F6D
_THIRD = 0x6C7967656E657261
_FOURTH = 0x7465646279746573


@helper
def _rotate(word: int, bits: int) -> int:
    return (word << uint64(bits)) | (word >> uint64(64 - bits))


@helper
def _round(first: int, second: int, third: int, fourth: int) -> tuple[int, int, int, int]:
    first += second
    second = _rotate(second, 13) ^ first
    first = _rotate(first, 32)
    third += fourth
    fourth = _rotate(fourth, 16) ^ third
    first += fourth
    fourth = _rotate(fourth, 21) ^ first
    third += second
    second = _rotate(second, 17) ^ third
    third = _rotate(third, 32)
    return first, second, third, fourth


@helper
def siphash(data: BytesIn, start: int, size: int, low: int, high: int) -> tuple[int, int]:
    """Return both halves of the hash of a range, with the halves of the secret as words."""
    first = uint64(_FIRST) ^ low
    second = uint64(_SECOND) ^ high ^ uint64(0xEE)
    third = uint64(_THIRD) ^ low
    fourth = uint64(_FOURTH) ^ high
    position = start
    while position + 8 <= start + size:
        word = load_word(data, position)
        fourth ^= word
        for _ in range(2):
            first, second, third, fourth = _round(first, second, third, fourth)
        first ^= word
        position += 8
    word = uint64(size & 0xFF) << uint64(56)
    for index in range(start + size - position):
        word |= uint64(data[position + index]) << uint64(8 * index)
    fourth ^= word
    for _ in range(2):
        first, second, third, fourth = _round(first, second, third, fourth)
    first ^= word
    third ^= uint64(0xEE)
    for _ in range(4):
        first, second, third, fourth = _round(first, second, third, fourth)
    found = first ^ second ^ third ^ fourth
    second ^= uint64(0xDD)
    for _ in range(4):
        first, second, third, fourth = _round(first, second, third, fourth)
    return found, first ^ second ^ third ^ fourth
