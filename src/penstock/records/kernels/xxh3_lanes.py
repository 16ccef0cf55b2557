"""XXH3's inner loop, over what is longer than 240 bytes: eight sums side by side.

The compiler has its own code for it, in which the eight are one vector that stays in the
processor's registers: over an array they are loads and stores, and take five times as long.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from penstock.records.kernels.arguments import uint64

SECRET_BYTES: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
PRIME32_1: Final = 0x9E3779B1
FIRST_LANES: Final = (
    0xC2B2AE3D,
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x85EBCA77,
    0x27D4EB2F165667C5,
    PRIME32_1,
)
LANES: Final = len(FIRST_LANES)
STRIPE: Final = 8 * LANES
STRIPES_PER_BLOCK: Final = 16
BLOCK: Final = STRIPE * STRIPES_PER_BLOCK
SCRAMBLING_SECRET: Final = len(SECRET_BYTES) - STRIPE
LAST_SECRET: Final = SCRAMBLING_SECRET - 7
_MASK: Final = (1 << 64) - 1


def sum_lanes(data: Any, start: int, size: int) -> tuple[int, ...]:
    """Return the eight sums over a range of more than 240 bytes of `data`."""
    stripes = bytes(data[start : start + size])
    lanes = list(FIRST_LANES)
    blocks, rest = divmod(size - 1, BLOCK)
    for block in range(blocks):
        for stripe in range(STRIPES_PER_BLOCK):
            _accumulate(lanes, stripes, block * BLOCK + stripe * STRIPE, 8 * stripe)
        keys = _words(SECRET_BYTES, SCRAMBLING_SECRET)
        for lane, key in enumerate(keys):
            mixed = lanes[lane] ^ lanes[lane] >> 47 ^ key
            lanes[lane] = mixed * PRIME32_1 & _MASK
    for stripe in range(rest // STRIPE):
        _accumulate(lanes, stripes, blocks * BLOCK + stripe * STRIPE, 8 * stripe)
    _accumulate(lanes, stripes, size - STRIPE, LAST_SECRET)
    return tuple(map(uint64, lanes))


def _accumulate(lanes: list[int], data: bytes, position: int, secret: int) -> None:
    """Add a stripe: each word to its neighbour, and the product of its keyed halves."""
    keys = _words(SECRET_BYTES, secret)
    for lane, (word, key) in enumerate(zip(_words(data, position), keys, strict=True)):
        keyed = word ^ key
        product = (keyed & 0xFFFFFFFF) * (keyed >> 32)
        lanes[lane] = (lanes[lane] + product) & _MASK
        lanes[lane ^ 1] = (lanes[lane ^ 1] + word) & _MASK


def _words(data: bytes, position: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{LANES}Q", data, position)
