"""The checksum in the header of an lz4 frame, which clients got wrong in messages of magic 0.

They summed the frame's first four bytes too (KAFKA-3160), so in magic 0 nobody may rely on it.
"""

from __future__ import annotations

from typing import Final

from penstock.xxh32 import xxh32

_MAGIC_SIZE: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01


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
