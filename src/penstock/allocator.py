"""What the C library does with memory that was given back."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.limits import CONVERSIONS_BYTES, FREED_BYTES, MIB

if TYPE_CHECKING:
    from penstock.memory import Memory

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Numbers of glibc's options (malloc.h)."""

_WORTH_RETURNING: Final = 32 * MIB
LARGEST_KEPT_BYTES: Final = 32 << 20
"""glibc's own maximum for the size from which a block is always a mapping of its own."""
_SHARE_OF_LARGEST: Final = 32
"""A block of a larger part of the budget is always a mapping, and leaves no hole in the heap."""


def return_freed_memory() -> None:
    """Give what is kept back to the system, with the holes between what is used."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class FreedMemory:
    """Gives back what a load leaves in the heap, once nobody who is short of memory does it.

    What one try could not give back is not tried again: to go through the heap takes milliseconds.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._left = int(CONVERSIONS_BYTES)
        self._has_tried = False

    def look(self) -> None:
        """Called once a second."""
        self._memory.measure()
        unknown = self._memory.unknown.used
        self._left = unknown if self._has_tried else min(self._left, unknown)
        self._has_tried = unknown - self._left > _WORTH_RETURNING
        if self._has_tried:
            return_freed_memory()


def keep_freed_memory(budget: int) -> None:
    """Have freed buffers used again instead of returned to the system.

    As much is kept as `FREED_BYTES`, or a quarter of the budget for memory where that is less.

    A batch that is read lies in a buffer of megabytes for the milliseconds until it is sent. When
    each of these is fresh memory, its page faults cost three times what all the rest does.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # Not glibc: others have their own ways.
    mallopt(_TRIM_THRESHOLD, min(FREED_BYTES, budget // 4))
    mallopt(_MMAP_THRESHOLD, min(LARGEST_KEPT_BYTES, budget // _SHARE_OF_LARGEST))
