"""What one subscription has acknowledged of one partition.

A message's position is its offset in the log, so that an acknowledged batch and an acknowledged
message inside a batch are the same thing: a range of offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.bitmaps import (
    BITS,
    BLOCK,
    FULL,
    blocks_between,
    leading_run,
    runs,
    span,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

_BLOCK_BYTES: Final = BLOCK // 8


class Cursor:
    """Everything below `position` is acknowledged, and so are single offsets above it.

    Those above are bits in blocks, so that memory follows the offsets between the first and the
    last one, an eighth of a byte each, whatever the order that acknowledgements come in. A block
    is never empty, its bits lie above `position`, and the offset at `position` is open.
    """

    __slots__ = ("_blocks", "_changed", "acknowledged_above", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self.acknowledged_above = 0
        """How many offsets above `position` are acknowledged."""
        self._blocks: dict[int, int] = {}
        self._changed: set[int] = set()

    @classmethod
    def restored(cls, position: int, blocks: Mapping[int, int]) -> Self:
        """Make the cursor whose position and changes were these."""
        cursor = cls(position)
        for number, bits in blocks.items():
            cursor._set_block(number, bits)
        cursor._changed.clear()
        return cursor

    @property
    def ranges(self) -> Iterator[tuple[int, int]]:
        """The acknowledged ranges above `position`, ends excluded, each as long as it can be."""
        pending: tuple[int, int] | None = None
        for number in sorted(self._blocks):
            base = number * BLOCK
            for low, high in runs(self._blocks[number]):
                if pending is not None and pending[1] == base + low:
                    pending = pending[0], base + high
                    continue
                if pending is not None:
                    yield pending
                pending = base + low, base + high
        if pending is not None:
            yield pending

    def acknowledge(self, start: int, end: int) -> int:
        """Mark the offsets from `start` up to but not `end`; return how many of them were open."""
        if end - start == 1 and start > self.position:
            return self._acknowledge_one(start)
        before = self.position + self.acknowledged_above
        if start <= self.position:
            self.acknowledge_below(end)
        else:
            self._set(start, end)
        count = self.position + self.acknowledged_above - before
        assert count <= max(end - start, 0), "what is acknowledged is counted once"
        return count

    def _acknowledge_one(self, offset: int) -> int:
        # What clients do most often; the general way takes thrice as long.
        number = offset // BLOCK
        before = self._blocks.get(number, 0)
        bits = before | BITS[offset % BLOCK]
        if bits == before:
            return 0
        self._blocks[number] = FULL if bits == FULL else bits
        self._changed.add(number)
        self.acknowledged_above += 1
        return 1

    def acknowledge_below(self, end: int) -> None:
        """Mark every offset below `end`."""
        if end <= self.position:
            return
        if not self._blocks:
            self.position = end
            return
        end = self._first_open(end)
        self._clear(self.position, end)
        self.position = end
        assert self.open_count(end, end + 1), "the offset at the position is open"

    def open_mask(self, start: int, end: int) -> int:
        """Return which offsets of a batch are still open: bit i stands for offset `start` + i."""
        first, last = start // BLOCK, -(-end // BLOCK)
        closed = int.from_bytes(
            b"".join(
                self._blocks.get(number, 0).to_bytes(_BLOCK_BYTES, "little")
                for number in range(first, last)
            ),
            "little",
        )
        closed >>= start - first * BLOCK
        if start < self.position:
            closed |= span(0, min(self.position, end) - start)
        return ~closed & span(0, end - start)

    def open_count(self, start: int, end: int) -> int:
        """Return how many offsets of a range are open."""
        start = max(start, self.position)
        if start >= end:
            return 0
        if not self._blocks:
            return end - start
        return end - start - sum(bits.bit_count() for _, bits in self._parts(start, end))

    def reset(self, position: int) -> None:
        """Go to `position` and forget what was acknowledged above it."""
        self.position = position
        self.acknowledged_above = 0
        self._changed.update(self._blocks)
        self._blocks.clear()

    def cut_off(self, end: int) -> bool:
        """Forget what lies at or above `end`; return whether anything did.

        A crash can take back messages that were delivered and acknowledged but not yet flushed. New
        messages then get their offsets, and must not count as acknowledged.
        """
        before = self.position, self.acknowledged_above
        if self._blocks:
            self._clear(end, (max(self._blocks) + 1) * BLOCK)
        self.position = min(self.position, end)
        return before != (self.position, self.acknowledged_above)

    def take_changes(self) -> list[tuple[int, int]]:
        """Return the number and the bits of each block that changed since the last time.

        A block has `BLOCK` offsets, its first is a multiple of that, and bit i stands for the
        offset i places after it. A block that is gone has no bits.
        """
        changes = [(number, self._blocks.get(number, 0)) for number in self._changed]
        self._changed.clear()
        return changes

    def give_back(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count changes that were taken as not taken."""
        self._changed.update(number for number, _ in changes)

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The blocks' bits between two offsets, each with its block's number."""
        for number in blocks_between(self._blocks, start, end):
            bits = self._blocks.get(number)
            if bits is not None:
                base = number * BLOCK
                yield number, bits & span(max(start - base, 0), min(end - base, BLOCK))

    def _set(self, start: int, end: int) -> None:
        while start < end:
            number, low = divmod(start, BLOCK)
            high = min(low + end - start, BLOCK)
            self._set_block(number, self._blocks.get(number, 0) | span(low, high))
            start += high - low

    def _first_open(self, offset: int) -> int:
        """Return the first open offset from one on that is above the position."""
        blocks = self._blocks
        number, low = divmod(offset, BLOCK)
        low += leading_run(blocks.get(number, 0) >> low)
        if low < BLOCK:
            return number * BLOCK + low
        number += 1
        # Very many may lie above one hole.
        while blocks.get(number) is FULL:
            number += 1
        return number * BLOCK + leading_run(blocks.get(number, 0))

    def _clear(self, start: int, end: int) -> None:
        blocks = self._blocks
        whole = range(-(-start // BLOCK), end // BLOCK)
        for number in blocks_between(blocks, whole.start * BLOCK, whole.stop * BLOCK):
            bits = blocks.pop(number, None)
            if bits is not None:
                self.acknowledged_above -= bits.bit_count()
                self._changed.add(number)
        # What is left lies in the first block and in the last one.
        for number, bits in list(self._parts(start, end)):
            self._set_block(number, blocks[number] ^ bits)

    def _set_block(self, number: int, bits: int) -> None:
        before = self._blocks.get(number, 0)
        self.acknowledged_above += bits.bit_count() - before.bit_count()
        self._changed.add(number)
        if bits:
            # All full blocks are one object.
            self._blocks[number] = FULL if bits == FULL else bits
        else:
            self._blocks.pop(number, None)
