"""MurmurHash3 x86 32-bit, in the public domain by Austin Appleby: Pulsar's choices rest on it."""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593


def murmur3_32(data: bytes, seed: int = 0) -> int:
    """Return the hash as an unsigned number of 32 bits."""
    whole = len(data) // 4 * 4
    state = seed
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        state ^= _scramble(word)
        state = (_rotate(state, 13) * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        state ^= _scramble(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    return state ^ (state >> 16)


def _scramble(word: int) -> int:
    return (_rotate((word * _C1) & _MASK, 15) * _C2) & _MASK


def _rotate(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK
