"""CRC-32 as zlib computes it, which Kafka's message sets carry, and CRC-32C (RFC 3720), which
batches and Pulsar's entries do. From Python fastcrc is faster; this is for kernels.

Eight bytes are a step, by eight look-ups. Of what is long, four such steps are taken beside one
another, each for every fourth word, so that none waits for the last one's look-ups ("braids" in
zlib 1.2.12); they are joined at the end. Processors of x86-64 have an instruction for Castagnoli's,
and most of them one by which zlib's is quick: see `crc32_folding`.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.records.kernels.arguments import BytesIn, NumbersIn, int64, uint64
from penstock.records.kernels.crc32_folding import BLOCK as FOLDED
from penstock.records.kernels.crc32_folding import can_fold, fold
from penstock.records.kernels.declaring import helper
from penstock.records.kernels.primitives import load_half, load_word

if TYPE_CHECKING:
    from penstock.records.columns import Numbers

HAS_INSTRUCTION: Final = platform.machine() == "x86_64"
"""Whether all processors that numpy runs on have one here: of x86-64 those with SSE4.2."""

_ZLIB: Final = 0xEDB88320
_CASTAGNOLI: Final = 0x82F63B78
_ONES: Final = 0xFFFFFFFF
_WORD: Final = 8
_BRAIDS: Final = 4
_BLOCK: Final = _BRAIDS * _WORD


def _tables(polynomial: int, distance: int) -> Numbers:
    """Return eight tables of 256: what each byte of a word does `distance` bytes from its start."""
    first = np.arange(256, dtype=np.int64)
    for _ in range(8):
        first = (first >> 1) ^ (polynomial * (first & 1))
    tables = [first]
    for _ in range(distance - 1):
        before = tables[-1]
        tables.append((before >> 8) ^ first[before & 0xFF])
    return np.concatenate(tables[: -_WORD - 1 : -1])


_NEXT: Final = _tables(_ZLIB, _WORD)
_BRAID: Final = _tables(_ZLIB, _BLOCK)
_NEXT_C: Final = _tables(_CASTAGNOLI, _WORD)
_BRAID_C: Final = _tables(_CASTAGNOLI, _BLOCK)
_BYTE: Final = 0x700
"""Where the table of a single byte begins."""


@helper
def _step(tables: NumbersIn, state: int, data: BytesIn, position: int) -> int:
    """Return the state after a word of data."""
    low = state ^ load_half(data, position)
    return _step_over(tables, low, load_half(data, position + 4))


@helper
def _step_over(tables: NumbersIn, low: int, high: int) -> int:
    """Return the state after a word, of which the lower half is joined with the state before."""
    return (
        tables[low & 0xFF]
        ^ tables[0x100 + ((low >> 8) & 0xFF)]
        ^ tables[0x200 + ((low >> 16) & 0xFF)]
        ^ tables[0x300 + ((low >> 24) & 0xFF)]
        ^ tables[0x400 + (high & 0xFF)]
        ^ tables[0x500 + ((high >> 8) & 0xFF)]
        ^ tables[0x600 + ((high >> 16) & 0xFF)]
        ^ tables[0x700 + ((high >> 24) & 0xFF)]
    )


@helper
def _checksum(
    follow: NumbersIn, braid: NumbersIn, state: int, data: BytesIn, position: int, end: int
) -> int:
    """Return a checksum, by the tables of its polynomial, of what follows a state."""
    if end - position >= 2 * _BLOCK:
        second = third = fourth = int64(0)
        while position + 2 * _BLOCK <= end:
            state = _step(braid, state, data, position)
            second = _step(braid, second, data, position + _WORD)
            third = _step(braid, third, data, position + 2 * _WORD)
            fourth = _step(braid, fourth, data, position + 3 * _WORD)
            position += _BLOCK
        state = _step(follow, state, data, position)
        state = _step(follow, state ^ second, data, position + _WORD)
        state = _step(follow, state ^ third, data, position + 2 * _WORD)
        state = _step(follow, state ^ fourth, data, position + 3 * _WORD)
        position += _BLOCK
    while position + _WORD <= end:
        state = _step(follow, state, data, position)
        position += _WORD
    while position < end:
        state = (state >> 8) ^ follow[_BYTE + ((state ^ int64(data[position])) & 0xFF)]
        position += 1
    return state ^ _ONES


def _crc32_by_tables(data: BytesIn, position: int, end: int) -> int:
    return _checksum(_NEXT, _BRAID, int64(_ONES), data, position, end)


def _crc32_by_folding(data: BytesIn, position: int, end: int) -> int:
    blocks = (end - position) // FOLDED
    if blocks == 0 or can_fold() == 0:
        return _checksum(_NEXT, _BRAID, int64(_ONES), data, position, end)
    low, high = fold(data, position, blocks, _ONES)
    state = int64(0)
    for word in (low, high):
        half = int64(word & uint64(_ONES))
        state = _step_over(_NEXT, state ^ half, int64(word >> uint64(32)))
    return _checksum(_NEXT, _BRAID, state, data, position + blocks * FOLDED, end)


crc32: Final = helper(_crc32_by_folding if HAS_INSTRUCTION else _crc32_by_tables)
"""Returns zlib's checksum of these bytes."""


def crc32c_word(state: int, word: int) -> int:
    """Return Castagnoli's state after 8 bytes. The compiler has an instruction for it where
    `HAS_INSTRUCTION` says so.
    """
    low, high = (int(state) ^ int(word)) & _ONES, int(word) >> 32
    found = 0
    for place in range(4):
        found ^= _NEXT_C[0x100 * place + ((low >> 8 * place) & 0xFF)]
        found ^= _NEXT_C[0x100 * (4 + place) + ((high >> 8 * place) & 0xFF)]
    return int64(found)


def _crc32c_by_instruction(data: BytesIn, position: int, end: int) -> int:
    state = int64(_ONES)
    while position + _WORD <= end:
        state = crc32c_word(state, load_word(data, position))
        position += _WORD
    while position < end:
        state = (state >> 8) ^ _NEXT_C[_BYTE + ((state ^ int64(data[position])) & 0xFF)]
        position += 1
    return state ^ _ONES


def _crc32c_by_tables(data: BytesIn, position: int, end: int) -> int:
    return _checksum(_NEXT_C, _BRAID_C, int64(_ONES), data, position, end)


crc32c: Final = helper(_crc32c_by_instruction if HAS_INSTRUCTION else _crc32c_by_tables)
"""Returns Castagnoli's checksum of these bytes."""
