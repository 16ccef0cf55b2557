"""The checksum in the header of an lz4 frame, which clients got wrong in messages of magic 0.

They summed the frame's first four bytes too (KAFKA-3160), so in magic 0 nobody may rely on it.
"""

from __future__ import annotations

from typing import Final

_MAGIC_SIZE: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01
_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_WORD: Final = 0xFFFFFFFF


def with_right_checksum(frame: memoryview) -> memoryview:
    """Return the frame with the checksum of its header as the format has it."""
    if len(frame) <= _MAGIC_SIZE:
        return frame
    flags = frame[_MAGIC_SIZE]
    end = _MAGIC_SIZE + 2 + 8 * bool(flags & _HAS_CONTENT_SIZE) + 4 * bool(flags & _HAS_DICTIONARY)
    if len(frame) <= end:
        return frame
    right = xxh32(frame[_MAGIC_SIZE:end]) >> 8 & 0xFF
    if frame[end] == right:
        return frame
    mended = bytearray(frame)
    mended[end] = right
    return memoryview(mended)


def xxh32(data: memoryview) -> int:
    """Return the XXH32 with seed 0 of fewer than 16 bytes, which the descriptor of a frame has."""
    assert len(data) < 16, "longer ones begin with another step"
    number = _PRIMES[4] + len(data)
    position = 0
    while position + 4 <= len(data):
        number += int.from_bytes(data[position : position + 4], "little") * _PRIMES[2]
        number = _rotate(number, 17) * _PRIMES[3]
        position += 4
    for byte in data[position:]:
        number = _rotate(number + byte * _PRIMES[4], 11) * _PRIMES[0]
    number &= _WORD
    number = (number ^ number >> 15) * _PRIMES[1] & _WORD
    number = (number ^ number >> 13) * _PRIMES[2] & _WORD
    return number ^ number >> 16


def _rotate(number: int, bits: int) -> int:
    number &= _WORD
    return (number << bits | number >> (32 - bits)) & _WORD
