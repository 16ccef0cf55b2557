"""Which partition a key belongs to, for a column of keys at once, as each protocol's clients say.

All keys go on one step after the other, sorted by their length, so that those that have a word left
are always the first ones: each step is a few operations of numpy for many keys. Numbers have 32
bits and wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Numbers

Words: TypeAlias = NDArray[np.uint32]
Hash: TypeAlias = Callable[[NDArray[Any], NDArray[np.int64], NDArray[np.int64]], Words]
"""Takes the bytes, and where each key starts in them and how long it is, the longest first."""

_POSITIVE: Final = 0x7FFFFFFF
_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_PRIMES: Final = tuple(
    np.uint32(each) for each in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
)


def kafka_hash(data: Bytes, starts: Numbers, sizes: Numbers) -> Numbers:
    """By MurmurHash2, as Kafka's Java client does; `partitioner.murmur2` hashes a single key."""
    return _hashed(_murmur2, data, starts, sizes) & _POSITIVE


def iggy_hash(data: Bytes, starts: Numbers, sizes: Numbers) -> Numbers:
    """By XXH32, as Iggy's server does; `penstock.xxh32` hashes a single key."""
    return _hashed(_xxh32, data, starts, sizes)


def pulsar_hash(data: Bytes, starts: Numbers, sizes: Numbers) -> Numbers:
    """By `String.hashCode`, as Pulsar's Java client does unless it is set otherwise.

    The characters are those of UTF-16. Raises UnicodeDecodeError where the keys are no UTF-8.
    """
    characters = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), np.uint16)
    begins = (data & 0xC0) != 0x80
    # Above U+FFFF one character of UTF-8 is two of UTF-16.
    before = np.concatenate(([0], np.cumsum(begins.astype(np.int64) + (data >= 0xF0))))
    first = before[starts]
    return _hashed(_java_string, characters, first, before[starts + sizes] - first) & _POSITIVE


HASHES: Final[Mapping[str, Callable[[Bytes, Numbers, Numbers], Numbers]]] = MappingProxyType(
    {"kafka": kafka_hash, "pulsar": pulsar_hash, "iggy": iggy_hash}
)
"""By whose clients do so."""


def _hashed(hash_of: Hash, data: NDArray[Any], starts: Numbers, sizes: Numbers) -> Numbers:
    order = np.argsort(-sizes, kind="stable")
    hashed = np.empty(len(sizes), np.int64)
    hashed[order] = hash_of(data, starts[order], sizes[order])
    return hashed


def _murmur2(data: NDArray[Any], starts: Numbers, sizes: Numbers) -> Words:
    words = _words(data)
    state = (sizes ^ _SEED).astype(np.uint32)
    for position, count in _steps(sizes, 4):
        word = words[starts[:count] + position] * _MULTIPLIER
        word = (word ^ _right(word, 24)) * _MULTIPLIER
        state[:count] = state[:count] * _MULTIPLIER ^ word
    rest = sizes & 3
    tail = words[starts + sizes - rest] & ((1 << 8 * rest) - 1).astype(np.uint32)
    state = np.where(rest > 0, (state ^ tail) * _MULTIPLIER, state)
    state = (state ^ _right(state, 13)) * _MULTIPLIER
    return state ^ _right(state, 15)


def _xxh32(data: NDArray[Any], starts: Numbers, sizes: Numbers) -> Words:
    words = _words(data)
    value = _stripes(words, starts, sizes) + sizes.astype(np.uint32)
    position = starts + sizes // 16 * 16
    for lane in range(3):
        mixed = _rotated(value + words[position] * _PRIMES[2], 17) * _PRIMES[3]
        has_lane = sizes % 16 // 4 > lane
        value = np.where(has_lane, mixed, value)
        position = position + 4 * has_lane
    for byte in range(3):
        has_byte = sizes % 4 > byte
        last = words[position] & np.uint32(0xFF)
        value = np.where(has_byte, _rotated(value + last * _PRIMES[4], 11) * _PRIMES[0], value)
        position = position + has_byte
    value = (value ^ _right(value, 15)) * _PRIMES[1]
    value = (value ^ _right(value, 13)) * _PRIMES[2]
    return value ^ _right(value, 16)


def _stripes(words: Words, starts: Numbers, sizes: Numbers) -> Words:
    """Hash all whole runs of 16 bytes."""
    one, two, _, _, five = _PRIMES
    begin = np.array([one, two, 0, 0], np.uint32) + np.array(
        [two, 0, 0, -int(one) & 0xFFFFFFFF], np.uint32
    )
    sums = np.repeat(begin[:, None], len(sizes), axis=1)
    for position, count in _steps(sizes, 16):
        for lane in range(4):
            word = words[starts[:count] + position + 4 * lane]
            sums[lane, :count] = _rotated(sums[lane, :count] + word * two, 13) * one
    joined = sum(_rotated(sums[lane], bits) for lane, bits in enumerate((1, 7, 12, 18)))
    return np.where(sizes >= 16, joined, five)


def _java_string(characters: NDArray[Any], starts: Numbers, sizes: Numbers) -> Words:
    state = np.zeros(len(sizes), np.uint32)
    for position, count in _steps(sizes, 1):
        state[:count] = state[:count] * np.uint32(31) + characters[starts[:count] + position]
    return state


def _steps(sizes: Numbers, width: int) -> list[tuple[int, int]]:
    """Return for each step its position, and how many keys are as long as that."""
    longest = int(sizes[0]) if len(sizes) else 0
    positions = range(0, longest - width + 1, width)
    counts = np.searchsorted(-sizes, [-(each + width) for each in positions], side="right")
    return list(zip(positions, counts.tolist(), strict=True))


def _words(data: NDArray[Any]) -> Words:
    """View the four bytes from each position on as a number, little end first."""
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    return np.ndarray(len(data) + 1, "<u4", padded.data, strides=(1,))


def _rotated(value: Words, bits: int) -> Words:
    return value << np.uint32(bits) | _right(value, 32 - bits)


def _right(value: Words, bits: int) -> Words:
    return value >> np.uint32(bits)
