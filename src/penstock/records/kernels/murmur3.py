"""MurmurHash3 x86 32-bit, in the public domain by Austin Appleby: Pulsar's choices rest on it."""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, int64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_half

_MASK: Final = 0xFFFFFFFF


@helper
def murmur3(data: BytesIn, start: int, size: int) -> int:
    """Return the hash of a range, with seed 0, as an unsigned number of 32 bits."""
    state = int64(0)
    position = start
    while position + 4 <= start + size:
        state ^= _scramble(load_half(data, position) & _MASK)
        state = (_rotate(state, 13) * 5 + 0xE6546B64) & _MASK
        position += 4
    word = int64(0)
    for index in range(start + size - position):
        word |= int64(data[position + index]) << (8 * index)
    state ^= _scramble(word)
    state ^= size & _MASK
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    return state ^ (state >> 16)


@helper
def _scramble(word: int) -> int:
    return (_rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593) & _MASK


@helper
def _rotate(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK
