"""XXH32, by which Iggy maps a key to a partition and a consumer's name to its number, and which is
the checksum in the header of an lz4 frame.

Source: the xxHash specification, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

from __future__ import annotations

import struct
from typing import Final

_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK: Final = 0xFFFFFFFF
_STRIPE: Final = struct.Struct("<IIII")
_LANE: Final = struct.Struct("<I")


def xxh32(data: bytes | memoryview) -> int:
    """Return the hash of `data` with seed 0. Meant for names, keys and headers, which are short."""
    one, two, three, four, five = _PRIMES
    stripes_end = len(data) - len(data) % _STRIPE.size
    if stripes_end:
        accumulators = [(one + two) & _MASK, two, 0, -one & _MASK]
        for lanes in _STRIPE.iter_unpack(data[:stripes_end]):
            accumulators = [
                _rotate((accumulator + lane * two) & _MASK, 13) * one & _MASK
                for accumulator, lane in zip(accumulators, lanes, strict=True)
            ]
        value = sum(map(_rotate, accumulators, (1, 7, 12, 18)))
    else:
        value = five
    value = (value + len(data)) & _MASK
    lanes_end = len(data) - len(data) % _LANE.size
    for (lane,) in _LANE.iter_unpack(data[stripes_end:lanes_end]):
        value = _rotate((value + lane * three) & _MASK, 17) * four & _MASK
    for byte in data[lanes_end:]:
        value = _rotate((value + byte * five) & _MASK, 11) * one & _MASK
    return _avalanche(value)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def _avalanche(value: int) -> int:
    for shift, prime in ((15, _PRIMES[1]), (13, _PRIMES[2])):
        value = (value ^ value >> shift) * prime & _MASK
    return value ^ value >> 16
