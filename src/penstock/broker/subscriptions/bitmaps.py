"""Sets of offsets as bits: whole numbers for a few, and blocks of them for many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

BLOCK: Final = 1024
"""Offsets in a block: small enough to be changed at once, large enough to be few."""
FULL: Final = (1 << BLOCK) - 1
BITS: Final = tuple(1 << bit for bit in range(BLOCK))
"""Each bit of a block alone: a shift that makes a long number takes longer than this."""

_RUN: Final = re.compile("1+")


def span(start: int, end: int) -> int:
    """Return the bits from `start` up to but not including `end`."""
    return (1 << end) - (1 << start)


def runs(bits: int) -> Iterator[tuple[int, int]]:
    """Return the runs of set bits in ascending order, ends excluded, in linear time."""
    # Shifting run by run would be quadratic, and clients choose the bits.
    return (found.span() for found in _RUN.finditer(f"{bits:b}"[::-1]))


def leading_run(bits: int) -> int:
    """Return how many of the lowest bits are set."""
    return (~bits & (bits + 1)).bit_length() - 1


def blocks_between(blocks: Mapping[int, Any], start: int, end: int) -> Collection[int]:
    """Return the numbers of blocks that may hold offsets from `start` up to `end`, ascending."""
    numbers = range(start // BLOCK, -(-end // BLOCK))
    if len(numbers) <= max(len(blocks), 1):
        return numbers
    return sorted(number for number in blocks if number in numbers)
