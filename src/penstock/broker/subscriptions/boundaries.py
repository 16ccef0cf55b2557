"""Where batches begin that are out and have no lease: a bit for each offset."""

from __future__ import annotations

from typing import Final

from penstock.broker.subscriptions.bitmaps import BITS, BLOCK
from penstock.pace import drop

_BLOCK_BYTES: Final = 320
"""About what a block takes of memory."""
_DROPPED_TOGETHER: Final = 1_000


class Boundaries:
    """Batches that follow one another. Nothing is known of those below the first that was added,
    or below what was dropped.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._end = 0
        self._first_block = 0

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return len(self._blocks) * _BLOCK_BYTES

    @property
    def end(self) -> int:
        """Where the last batch ended that was added."""
        return self._end if self._blocks else 0

    def add(self, start: int, end: int, begins: int = 1) -> None:
        """Remember batches behind the ones before: bit i of `begins` is one at `start` + i, and
        several lie in one block.
        """
        if not self._blocks:
            self._first_block = start // BLOCK
        assert start >= self._end or not self._blocks, "batches are added in their order"
        number = start // BLOCK
        self._blocks[number] = self._blocks.get(number, 0) | begins << (start % BLOCK)
        self._end = end

    def get(self, start: int) -> tuple[int, int] | None:
        """Return the batch that begins at an offset, with the gap behind it, if it is known."""
        number, low = divmod(start, BLOCK)
        bits = self._blocks.get(number, 0)
        if not bits & BITS[low]:
            return None
        later = bits >> (low + 1)
        if later:
            return start, start + (later & -later).bit_length()
        for following in range(number + 1, -(-self._end // BLOCK)):
            bits = self._blocks.get(following, 0)
            if bits:
                return start, following * BLOCK + (bits & -bits).bit_length() - 1
        return start, self._end

    def drop_below(self, offset: int) -> None:
        """Forget batches that begin below an offset, as far as whole blocks of them.

        Of very many some are left to the next time, and known until then.
        """
        last = min(offset // BLOCK, self._first_block + _DROPPED_TOGETHER)
        while self._blocks and self._first_block < last:
            self._blocks.pop(self._first_block, None)
            self._first_block += 1

    def clear(self) -> None:
        drop(self._blocks)
        self._blocks = {}
        self._end = 0
