"""MurmurHash3 x64 128, by which the dialect of 2023 maps a key to a partition.

Source: https://github.com/aappleby/smhasher/blob/master/src/MurmurHash3.cpp, in the public domain.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_ONE: Final = 0x87C37B91114253D5
_TWO: Final = 0x4CF5AD432745937F
_BLOCK: Final = struct.Struct("<QQ")


def murmur3(data: bytes) -> int:
    """Return the hash of `data` with seed 0, as one number. Meant for keys, which are short."""
    high = low = 0
    whole = len(data) - len(data) % _BLOCK.size
    for first, second in _BLOCK.iter_unpack(data[:whole]):
        low ^= _mixed(first, _ONE, 31, _TWO)
        low = ((_rotated(low, 27) + high) * 5 + 0x52DCE729) & _MASK
        high ^= _mixed(second, _TWO, 33, _ONE)
        high = ((_rotated(high, 31) + low) * 5 + 0x38495AB5) & _MASK
    first, second = _BLOCK.unpack(data[whole:].ljust(_BLOCK.size, b"\0"))
    low ^= _mixed(first, _ONE, 31, _TWO) ^ len(data)
    high ^= _mixed(second, _TWO, 33, _ONE) ^ len(data)
    low = (low + high) & _MASK
    high = (high + low) & _MASK
    low, high = _finished(low), _finished(high)
    low = (low + high) & _MASK
    return ((high + low) & _MASK) << 64 | low


def _mixed(word: int, by: int, bits: int, then_by: int) -> int:
    return _rotated(word * by & _MASK, bits) * then_by & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _finished(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
