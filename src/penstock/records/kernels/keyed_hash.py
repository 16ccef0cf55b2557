"""A hash of bytes by a secret number: a polynomial of the bytes, at that number, modulo 2^61 - 1.

Two keys that differ are two polynomials, of one degree more than they have words of seven bytes. So
at most that many of the 2^61 - 1 secrets make them alike, whoever has chosen the keys: nothing is
assumed but that the secret is drawn evenly and nobody outside sees a hash. Two secrets square that.
(Carter and Wegman, "New hash functions and their use in authentication and set equality", 1981.)
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import BytesIn, uint64
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_word

PRIME: Final = (1 << 61) - 1
_WORD_BYTES: Final = 7
_WORD_MASK: Final = (1 << 56) - 1
_MIX_1: Final = 0xFF51AFD7ED558CCD
_MIX_2: Final = 0xC4CEB9FE1A85EC53


def multiply(left: int, right: int) -> int:
    """Return what is the product modulo PRIME, of a number below 2^62 and one below PRIME: below
    2^63. The compiler has its own code.
    """
    product = int(left) * int(right)
    return uint64((product & PRIME) + (product >> 61))


@helper
def _reduced(number: int) -> int:
    """Return the same modulo PRIME, below PRIME + 4."""
    return (number & uint64(PRIME)) + (number >> uint64(61))


@helper
def _step(state: int, word: int, secret: int) -> int:
    return _reduced(multiply(state + word, secret))


@helper
def _last_word(data: BytesIn, position: int, size: int) -> int:
    """Return fewer than eight bytes as a little-endian number."""
    if position + 8 <= len(data):
        return load_word(data, position) & ((uint64(1) << uint64(8 * size)) - uint64(1))
    word = uint64(0)
    for index in range(size):
        word |= uint64(data[position + index]) << uint64(8 * index)
    return word


@helper
def _complete(state: int) -> int:
    """Return the number below PRIME that a state stands for, its bits mixed: as tables need them,
    and so that no two numbers become one (MurmurHash3's fmix64).
    """
    state = _reduced(state)
    if state >= uint64(PRIME):
        state -= uint64(PRIME)
    state = (state ^ (state >> uint64(33))) * uint64(_MIX_1)
    state = (state ^ (state >> uint64(33))) * uint64(_MIX_2)
    return state ^ (state >> uint64(33))


@helper
def keyed_hash(data: BytesIn, start: int, size: int, first: int, second: int) -> tuple[int, int]:
    """Return the hashes of a range by two secrets, which are below PRIME."""
    left = _step(uint64(0), uint64(size), first)
    right = _step(uint64(0), uint64(size), second)
    position = start
    end = start + size
    while position + 8 <= end:
        word = load_word(data, position) & uint64(_WORD_MASK)
        left = _step(left, word, first)
        right = _step(right, word, second)
        position += _WORD_BYTES
    if position < end:
        word = _last_word(data, position, end - position)
        left = _step(left, word, first)
        right = _step(right, word, second)
    return _complete(left), _complete(right)
