"""How much memory the answers hold that a client did not take to their end.

An answer leaves memory as a whole: of a large one the system's socket buffers take megabytes from
a client that reads nothing, and none of that is free before its last byte is sent.
"""

from __future__ import annotations

from collections import deque


class Unsent:
    """What one connection has handed over to be sent, in order, as far as it is counted."""

    __slots__ = ("_sizes", "_total", "held", "left")

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._total = 0
        self.left = 0
        """Bytes that are not sent, as of the last look."""
        self.held = 0
        """Bytes of memory that are held for them, as of the last look."""

    def add(self, size: int) -> None:
        """An answer of so many bytes of memory was handed over."""
        self._sizes.append(size)
        self._total += size

    def look(self, left: int) -> None:
        """`left` bytes are not sent; those may belong to answers that were not added too."""
        sizes = self._sizes
        while sizes and self._total - sizes[0] >= left:
            self._total -= sizes.popleft()
        self.left = left
        self.held = max(self._total, left)
